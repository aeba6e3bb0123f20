// scanf's targets: what is spilled is assigned to plain memory first and stored afterwards. A string
// without a width may be of any length: the format is changed to let the C library allocate it (%ms). Numbers of arguments are left out of it: an
// argument that several conversions share is a target of each, in their order.
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
  bool has_no_width = false;            // of a string
  const char* before_number = nullptr;  // of its argument
  const char* after_number = nullptr;   // the same place if there is none
  const char* before_type = nullptr;    // where an m belongs to let the C library allocate
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
  conversion.before_number = reader.position();
  const int numbered = reader.argument_index();
  conversion.after_number = reader.position();
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

struct Counts {
  size_t arguments = 0;
  size_t targets = 0;
};

// How many arguments the format takes, and how many of its conversions store something.
Counts count_targets(const char* format) {
  Counts counts;
  int next = 0, order = 0;
  for (FormatReader reader(format); reader.find_conversion();) {
    const int index = read_conversion(reader, next, order).index;
    if (index < 0) continue;
    counts.arguments = std::max(counts.arguments, static_cast<size_t>(index) + 1);
    ++counts.targets;
  }
  return counts;
}

char* append(char* to, const char* begin, const char* end) {
  return static_cast<char*>(mempcpy(to, begin, static_cast<size_t>(end - begin)));
}

// Fills in `targets`, in the order of their conversions, and writes the format to use to `to`.
void describe_targets(const char* format, std::span<void* const> arguments, std::span<Target> targets,
                      char* to) {
  int next = 0, order = 0;
  size_t count = 0;
  const char* copied = format;
  for (FormatReader reader(format); reader.find_conversion();) {
    Conversion conversion = read_conversion(reader, next, order);
    to = append(to, copied, conversion.before_number);
    copied = conversion.after_number;
    if (conversion.index < 0) continue;
    Target& target = targets[count++];
    target = conversion.target;
    target.pointer = arguments[static_cast<size_t>(conversion.index)];
    if (!conversion.has_no_width || plain(target.pointer)) continue;
    target.is_allocated = true;
    to = append(to, copied, conversion.before_type);
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

int call_with_temporaries(const char* format, std::span<void* const> arguments, std::span<Target> targets,
                          va_list original, FormatCall call, void* context) {
  // At most one m is added for each conversion, which has at least two characters.
  Scratch format_memory(2 * strlen(format) + 1);
  if (format_memory.data() == nullptr) return EOF;
  describe_targets(format, arguments, targets, format_memory.data());
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
  const Counts counts = count_targets(plain_format);
  const size_t targets_bytes = counts.targets * sizeof(Target);
  Scratch memory(targets_bytes + counts.arguments * sizeof(void*));
  if (memory.size() > 0 && memory.data() == nullptr) {
    errno = ENOMEM;
    return EOF;
  }
  std::span<Target> targets(reinterpret_cast<Target*>(memory.data()), counts.targets);
  std::span<void*> arguments(reinterpret_cast<void**>(memory.data() + targets_bytes), counts.arguments);
  va_list list;
  va_copy(list, original);
  bool spilled = false;
  for (void*& argument : arguments) {
    argument = va_arg(list, void*);
    spilled |= !plain(argument);
  }
  va_end(list);
  if (!spilled) return call(context, plain_format, original);
  return call_with_temporaries(plain_format, arguments, targets, original, call, context);
}

}  // namespace spill
