// scanf's targets: what is spilled is assigned to plain memory first and stored afterwards. A string
// without a width may be of any length: the format is changed to let the C library allocate it (%ms).
#include <errno.h>
#include <stdio.h>
#include <wchar.h>

#include "spill/intercept/format.h"

namespace spill {
namespace {

struct Target {
  void* pointer = nullptr;  // what the program passed
  size_t bytes = 0;         // of the temporary
  char* temporary = nullptr;
  int order = -1;             // among the conversions that count in the result; -1: stored in any case
  bool is_string = false;     // stored up to its 0, else all bytes
  bool is_wide = false;       // of characters
  bool is_allocated = false;  // the temporary holds the address of a string that the C library allocated
};

struct Conversion {
  int index = -1;  // of its argument; -1: none
  Target target;
  bool has_no_width = false;          // of a string
  const char* before_type = nullptr;  // where an m belongs to let the C library allocate
};

void skip_character_set(FormatReader& reader) {
  reader.skip('^');
  reader.skip(']');
  while (reader.peek() != 0 && !reader.skip(']')) reader.take();
}

void describe_text(Conversion& conversion, char type, bool wide, int width) {
  Target& target = conversion.target;
  const size_t character_bytes = wide ? sizeof(wchar_t) : 1;
  target.is_wide = wide;
  if (type == 'c') {
    target.bytes = static_cast<size_t>(width > 0 ? width : 1) * character_bytes;
  } else if (width > 0) {
    target.bytes = (static_cast<size_t>(width) + 1) * character_bytes;
    target.is_string = true;
  } else {
    conversion.has_no_width = true;
    target.bytes = sizeof(void*);
  }
}

size_t number_bytes(char type, char length) {
  if (strchr("aAeEfFgG", type) != nullptr) return length == 'L' ? sizeof(long double) : length == 'l' ? 8 : 4;
  if (type == 'p') return 8;
  return length == 'H' ? 1 : length == 'h' ? 2 : length == 0 ? 4 : 8;
}

// The conversion after a '%'. `next`: index of the next argument that is not numbered; `order`: that of
// the next conversion that counts.
Conversion read_conversion(FormatReader& reader, int& next, int& order) {
  Conversion conversion;
  const int numbered = reader.argument_index();
  bool suppressed = false;
  while (reader.peek() != 0 && strchr("*'I", reader.peek()) != nullptr) suppressed |= reader.take() == '*';
  const int width = reader.number();
  const bool allocates = reader.skip('m');
  conversion.before_type = reader.position();
  const char length = reader.length_modifier();
  const char type = reader.take();
  if (type == '[') skip_character_set(reader);
  if (suppressed || type == 0 || strchr("diouxXpnaAeEfFgGsScC[", type) == nullptr) return conversion;
  conversion.index = numbered >= 0 ? numbered : next++;
  if (type != 'n') conversion.target.order = order++;
  const bool wide = length == 'l' || type == 'S' || type == 'C';
  if (strchr("sScC[", type) == nullptr)
    conversion.target.bytes = number_bytes(type, length);
  else if (allocates)  // null is stored when it does not match
    conversion.target.bytes = sizeof(void*), conversion.target.order = -1;
  else
    describe_text(conversion, type == 'C' ? 'c' : type, wide, width);
  return conversion;
}

// How many arguments the format takes.
int count_targets(const char* format) {
  int count = 0, next = 0, order = 0;
  for (FormatReader reader(format); reader.find_conversion();)
    count = std::max(count, read_conversion(reader, next, order).index + 1);
  return count;
}

// Fills in `targets`, whose pointers are set, and writes the format to use to `to`.
void describe_targets(const char* format, std::span<Target> targets, char* to) {
  int next = 0, order = 0;
  const char* copied = format;
  for (FormatReader reader(format); reader.find_conversion();) {
    Conversion conversion = read_conversion(reader, next, order);
    if (conversion.index < 0) continue;
    Target& target = targets[static_cast<size_t>(conversion.index)];
    conversion.target.pointer = target.pointer;
    target = conversion.target;
    if (!conversion.has_no_width || plain(target.pointer)) continue;
    target.is_allocated = true;
    to = static_cast<char*>(mempcpy(to, copied, static_cast<size_t>(conversion.before_type - copied)));
    *to++ = 'm';
    copied = conversion.before_type;
  }
  strcpy(to, copied);
}

size_t text_bytes(const char* text, bool wide) {
  return wide ? (wcslen(reinterpret_cast<const wchar_t*>(text)) + 1) * sizeof(wchar_t) : strlen(text) + 1;
}

void store_target(const Target& target, int assigned) {
  // %n and %m keep their values if they were not reached.
  const bool is_assigned = target.order < 0 || target.order < assigned;
  if (target.is_allocated) {
    char* text = load(reinterpret_cast<char**>(target.temporary));
    if (is_assigned && text != nullptr) copy(target.pointer, text, text_bytes(text, target.is_wide));
    __spill_free(text);
  } else if (is_assigned) {
    const size_t bytes = target.is_string ? text_bytes(target.temporary, target.is_wide) : target.bytes;
    copy(target.pointer, target.temporary, std::min(bytes, target.bytes));
  }
}

int call_with_temporaries(const char* format, std::span<Target> targets, va_list original, FormatCall call,
                          void* context) {
  // At most one m is added for each conversion, which has at least two characters.
  Scratch format_memory(2 * strlen(format) + 1);
  if (format_memory.data() == nullptr) return EOF;
  describe_targets(format, targets, format_memory.data());
  const size_t list_bytes = ArgumentList::kBytesPerArgument * targets.size();
  size_t bytes = list_bytes;
  for (const Target& target : targets)
    if (!plain(target.pointer)) bytes += base::round_up(target.bytes, 16);
  Scratch memory(bytes);
  if (memory.data() == nullptr) return EOF;
  ArgumentList list(memory.data());
  char* unused = memory.data() + list_bytes;
  for (Target& target : targets) {
    if (plain(target.pointer)) {
      list.add(target.pointer);
      continue;
    }
    target.temporary = unused;
    unused += base::round_up(target.bytes, 16);
    if (target.is_allocated || target.is_string)
      memset(target.temporary, 0, target.bytes);
    else
      copy(target.temporary, target.pointer, target.bytes);
    list.add(target.temporary);
  }
  va_list rebuilt;
  va_copy(rebuilt, original);
  list.set(rebuilt);
  const int result = call(context, format_memory.data(), rebuilt);
  va_end(rebuilt);
  for (const Target& target : targets)
    if (!plain(target.pointer)) store_target(target, result);
  return result;
}

}  // namespace

int call_scanf(const char* format, va_list original, FormatCall call, void* context) {
  PlainString plain_format(format);
  if (plain_format == nullptr) return call(context, nullptr, original);
  const auto count = static_cast<size_t>(count_targets(plain_format));
  Scratch memory(count * sizeof(Target));
  if (count > 0 && memory.data() == nullptr) {
    errno = ENOMEM;
    return EOF;
  }
  std::span<Target> targets(reinterpret_cast<Target*>(memory.data()), count);
  va_list list;
  va_copy(list, original);
  bool spilled = false;
  for (Target& target : targets) {
    target = Target{.pointer = va_arg(list, void*)};
    spilled |= !plain(target.pointer);
  }
  va_end(list);
  if (!spilled) return call(context, plain_format, original);
  return call_with_temporaries(plain_format, targets, original, call, context);
}

}  // namespace spill
