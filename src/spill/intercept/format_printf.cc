// printf's arguments: spilled strings are copied, as much of them as is printed; %n counts into a copy.
#include <errno.h>
#include <printf.h>
#include <wchar.h>

#include <bit>
#include <new>

#include "spill/intercept/format.h"

namespace spill {
namespace {

enum class Kind : unsigned char {
  kGap,      // between numbered arguments
  kInteger,  // also characters, and pointers that only print as numbers
  kDouble,
  kLongDouble,
  kString,
  kWideString,
  kCount,  // %n
};

struct Argument {
  Kind kind = Kind::kGap;
  unsigned char count_bytes = 0;  // kCount: size of the integer
  int precision_argument = -1;    // strings: index of the argument that limits this one
  size_t precision = 0;           // strings: the largest limit written in the format
  uint64_t value = 0;             // integers, pointers, the bits of a double
  bool is_spilled = false;        // strings and counts: what it points to, in part at least
  size_t content_bytes = 0;       // of the plain copy, without the 0 that ends a string
  char* copy = nullptr;
  long double long_double = 0;
};

struct Arguments {
  Argument* at;
  int capacity;
  int count = 0;
  bool has_values = false;
  bool has_registered = false;  // conversions of the program's own
  bool shares_strings = false;  // a string is limited by several arguments

  // The argument `index`, or null when it does not fit; counts it anyway.
  Argument* use(int index) {
    count = std::max(count, index + 1);
    return index < capacity ? &at[index] : nullptr;
  }
  std::span<Argument> used() const { return {at, static_cast<size_t>(count)}; }
  void use(int index, Kind kind) {
    if (Argument* argument = use(index)) argument->kind = kind;
  }
};

// Width or precision: digits, or the index of the argument that holds it.
struct Limit {
  int value = -1;
  int argument = -1;
};

Limit read_limit(FormatReader& reader, Arguments& arguments, int& next) {
  Limit limit;
  if (reader.skip('*')) {
    limit.argument = reader.argument_index();
    if (limit.argument < 0) limit.argument = next++;
    arguments.use(limit.argument, Kind::kInteger);
  } else {
    limit.value = reader.number();
  }
  return limit;
}

// The length to which an argument that holds a precision limits a string. A negative one means no limit.
size_t limit_by(const Argument& argument) {
  const int precision = static_cast<int>(argument.value);
  return precision < 0 ? ~size_t{0} : static_cast<size_t>(precision);
}

void use_string(Arguments& arguments, int index, Kind kind, bool has_precision, Limit precision) {
  Argument* argument = arguments.use(index);
  if (argument == nullptr) return;
  argument->kind = kind;
  if (!has_precision) {
    argument->precision = ~size_t{0};
  } else if (precision.argument >= 0 && !arguments.has_values) {
    const int other = argument->precision_argument;
    arguments.shares_strings |= other >= 0 && other != precision.argument;
    argument->precision_argument = precision.argument;
  } else if (precision.argument >= 0) {
    argument->precision = std::max(argument->precision, limit_by(arguments.at[precision.argument]));
  } else {
    argument->precision =
        std::max<size_t>(argument->precision, static_cast<size_t>(std::max(precision.value, 0)));
  }
}

unsigned char count_bytes(char length) { return length == 'H' ? 1 : length == 'h' ? 2 : length == 0 ? 4 : 8; }

// Notes the arguments of a conversion of the program's own (register_printf_specifier), whose length and letter are
// [begin, end). Its function gets the program's addresses. Returns how many arguments it takes.
int use_registered(Arguments& arguments, int index, const char* begin, const char* end) {
  arguments.has_registered = true;
  char text[8] = "%";
  memcpy(text + 1, begin, static_cast<size_t>(end - begin));
  int types[16];
  const auto count =
      static_cast<int>(std::min(parse_printf_format(text, std::size(types), types), std::size(types)));
  for (int i = 0; i < count; ++i) {
    const bool is_pointer = (types[i] & PA_FLAG_PTR) != 0;
    const int type = types[i] & ~PA_FLAG_MASK;
    if (is_pointer || (type != PA_FLOAT && type != PA_DOUBLE))
      arguments.use(index + i, Kind::kInteger);
    else
      arguments.use(index + i, (types[i] & PA_FLAG_LONG_DOUBLE) != 0 ? Kind::kLongDouble : Kind::kDouble);
  }
  return count;
}

void read_conversion(FormatReader& reader, Arguments& arguments, int& next) {
  const int numbered = reader.argument_index();
  reader.skip_any("-+ #0'I");
  read_limit(reader, arguments, next);
  const bool has_precision = reader.skip('.');
  Limit precision;
  if (has_precision) precision = read_limit(reader, arguments, next);
  const char* type = reader.position();
  const char length = reader.length_modifier();
  const char conversion = reader.take();
  if (conversion == 0 || conversion == '%' || conversion == 'm') return;
  if (strchr("diouxXbBcCpaAeEfFgGsSn", conversion) == nullptr) {
    const int count = use_registered(arguments, numbered >= 0 ? numbered : next, type, reader.position());
    if (numbered < 0) next += count;
    return;
  }
  const int index = numbered >= 0 ? numbered : next++;
  switch (conversion) {
    case 's':
    case 'S':
      use_string(arguments, index, length == 'l' || conversion == 'S' ? Kind::kWideString : Kind::kString,
                 has_precision, precision);
      return;
    case 'n':
      if (Argument* argument = arguments.use(index)) {
        argument->kind = Kind::kCount;
        argument->count_bytes = count_bytes(length);
      }
      return;
    default:
      if (strchr("aAeEfFgG", conversion) != nullptr)
        arguments.use(index, length == 'L' ? Kind::kLongDouble : Kind::kDouble);
      else
        arguments.use(index, Kind::kInteger);
  }
}

// Whether any conversion dereferences a pointer. Most calls need no more than this check.
bool follows_pointers(const char* format) {
  for (FormatReader reader(format); reader.find_conversion();) {
    char c;
    // Flags, digits, lengths: everything but letters that are not lengths, and '%'.
    do c = reader.take();
    while ((c != 0 && c < 'A' && c != '%') || c == 'h' || c == 'l' || c == 'L' || c == 'q' || c == 'j' ||
           c == 'z' || c == 'Z' || c == 't' || c == 'I');
    if (c == 's' || c == 'S' || c == 'n') return true;
    if (c == 0) return false;
  }
  return false;
}

void read_format(const char* format, Arguments& arguments) {
  int next = 0;
  for (FormatReader reader(format); reader.find_conversion();) read_conversion(reader, arguments, next);
}

void take_values(const Arguments& arguments, va_list from) {
  va_list list;
  va_copy(list, from);
  for (Argument& argument : arguments.used()) {
    switch (argument.kind) {
      case Kind::kDouble: argument.value = std::bit_cast<uint64_t>(va_arg(list, double)); break;
      case Kind::kLongDouble: argument.long_double = va_arg(list, long double); break;
      default: argument.value = va_arg(list, uint64_t);
    }
  }
  va_end(list);
}

// The most that is printed of a string.
size_t limit_of(const Arguments& arguments, const Argument& argument) {
  if (argument.precision_argument < 0) return argument.precision;
  return std::max(argument.precision, limit_by(arguments.at[argument.precision_argument]));
}

// Finds the arguments that point to spilled memory. Returns whether there are any.
bool find_spilled(const Arguments& arguments) {
  bool any = false;
  for (Argument& argument : arguments.used()) {
    if (argument.kind < Kind::kString) continue;
    argument.is_spilled = in_range(argument.value);
    // A stream passes a long string to the kernel directly.
    if (argument.kind == Kind::kString && !argument.is_spilled)
      argument.is_spilled =
          ends_spilled(reinterpret_cast<const char*>(argument.value), limit_of(arguments, argument));
    any |= argument.is_spilled;
  }
  return any;
}

size_t wide_length(const char* text, size_t limit) {
  size_t length = 0;
  while (length < limit && load(reinterpret_cast<const wchar_t*>(text) + length) != 0) ++length;
  return length;
}

// Bytes of the plain copy of a spilled argument, without a string's terminator. A precision counts bytes of
// output; each wide character makes at least one.
size_t content_bytes(const Arguments& arguments, const Argument& argument) {
  if (argument.kind == Kind::kCount) return argument.count_bytes;
  const size_t limit = limit_of(arguments, argument);
  const char* text = reinterpret_cast<const char*>(argument.value);
  if (argument.kind == Kind::kWideString) return wide_length(text, limit) * sizeof(wchar_t);
  return string_length(text, limit);
}

// A copy and its terminator, a 0 as wide as the widest character.
size_t copy_bytes(const Argument& argument) {
  return base::round_up(argument.content_bytes + sizeof(wchar_t), sizeof(uint64_t));
}

int call_with_copies(const Arguments& arguments, const char* format, va_list original, FormatCall call,
                     void* context) {
  const size_t list_bytes = ArgumentList::kBytesPerArgument * static_cast<size_t>(arguments.count);
  size_t bytes = list_bytes;
  for (Argument& argument : arguments.used()) {
    if (!argument.is_spilled) continue;
    argument.content_bytes = content_bytes(arguments, argument);
    bytes += copy_bytes(argument);
  }
  Scratch memory(bytes);
  if (memory.data() == nullptr) return fail(ENOMEM);
  ArgumentList list(memory.data());
  char* free = memory.data() + list_bytes;
  for (Argument& argument : arguments.used()) {
    if (argument.kind == Kind::kLongDouble) {
      list.add(argument.long_double);
    } else if (!argument.is_spilled) {
      list.add(argument.value);
    } else {
      argument.copy = free;
      copy(argument.copy, reinterpret_cast<const void*>(argument.value), argument.content_bytes);
      memset(argument.copy + argument.content_bytes, 0, sizeof(wchar_t));
      list.add(argument.copy);
      free += copy_bytes(argument);
    }
  }
  va_list rebuilt;
  va_copy(rebuilt, original);
  list.set(rebuilt);
  const int result = call(context, format, rebuilt);
  va_end(rebuilt);
  for (const Argument& argument : arguments.used())
    if (argument.kind == Kind::kCount && argument.is_spilled)
      copy(reinterpret_cast<void*>(argument.value), argument.copy, argument.count_bytes);
  return result;
}

// Does the C library find as many arguments in the format, and none of a type that the program registered (register_printf_type)?
// Modifiers that the program registered (register_printf_modifier) are not known here.
bool is_understood(const Arguments& arguments, const char* format) {
  int types[64];
  const size_t count = parse_printf_format(format, std::size(types), types);
  return count == static_cast<size_t>(arguments.count) && count <= std::size(types) &&
         std::all_of(types, types + count, [](int type) { return (type & ~PA_FLAG_MASK) < PA_LAST; });
}

int call_with(Arguments& arguments, const char* format, va_list original, FormatCall call, void* context) {
  // Not understood: the C library then reads the strings where they are.
  if (arguments.has_registered && !is_understood(arguments, format)) return call(context, format, original);
  take_values(arguments, original);
  arguments.has_values = true;
  if (arguments.shares_strings) read_format(format, arguments);
  if (find_spilled(arguments)) return call_with_copies(arguments, format, original, call, context);
  return call(context, format, original);
}

}  // namespace

int call_printf(const char* format, va_list original, FormatCall call, void* context) {
  PlainString plain_format(format);
  const char* text = plain_format;
  if (text == nullptr || !follows_pointers(text)) return call(context, text, original);
  Argument few[12];
  Arguments arguments{few, std::size(few)};
  read_format(text, arguments);
  if (arguments.count <= arguments.capacity) return call_with(arguments, text, original, call, context);
  Scratch memory(static_cast<size_t>(arguments.count) * sizeof(Argument));
  if (memory.data() == nullptr) return fail(ENOMEM);
  Arguments many{reinterpret_cast<Argument*>(memory.data()), arguments.count};
  for (int i = 0; i < many.capacity; ++i) new (&many.at[i]) Argument();
  read_format(text, many);
  return call_with(many, text, original, call, context);
}

}  // namespace spill
