// The arguments of printf and scanf calls, made plain.
//
// Both parse the format to learn each argument's type, take the arguments from the caller's va_list, and put them
// into a new one, with all arguments in its overflow area (System V x86-64): eight bytes each, a long double
// sixteen at a multiple of sixteen.
//
//   caller's va_list ──► [argument: kind, value] ──► spilled? ──► copy or temporary in Scratch
//                                                        └──────► new va_list
//
// When neither the format nor any argument needs it, the caller's va_list is passed on as it is.
#pragma once
#include <stdarg.h>

#include "spill/intercept/intercept.h"

namespace spill {

using FormatCall = int (*)(void* context, const char* format, va_list arguments);

// Calls `call`, which calls a v*printf, with a plain format and plain arguments; it may use them more
// than once. Stores the counts of %n afterwards. Returns what `call` does, or -1 with ENOMEM.
int call_printf(const char* format, va_list arguments, FormatCall call, void* context);

// Calls `call`, which calls a v*scanf once, with a plain format and plain targets, and stores what was
// assigned. Returns what `call` does, or EOF with ENOMEM.
int call_scanf(const char* format, va_list arguments, FormatCall call, void* context);

template <class Call>
int with_printf_arguments(const char* format, va_list arguments, Call call) {
  return call_printf(
      format, arguments,
      [](void* context, const char* f, va_list a) { return (*static_cast<Call*>(context))(f, a); }, &call);
}
template <class Call>
int with_scanf_targets(const char* format, va_list arguments, Call call) {
  return call_scanf(
      format, arguments,
      [](void* context, const char* f, va_list a) { return (*static_cast<Call*>(context))(f, a); }, &call);
}

// A va_list under construction.
class ArgumentList {
 public:
  static constexpr size_t kBytesPerArgument = 32;  // a long double and the gap before it
  // `memory`: kBytesPerArgument for each argument, at a multiple of 16.
  explicit ArgumentList(char* memory) : begin_(memory), at_(memory) {}
  void add(uint64_t value) {
    memcpy(at_, &value, sizeof value);
    at_ += sizeof value;
  }
  void add(const void* pointer) { add(reinterpret_cast<uint64_t>(pointer)); }
  void add(long double value) {
    at_ = begin_ + base::round_up(static_cast<size_t>(at_ - begin_), alignof(long double));
    memcpy(at_, &value, sizeof value);
    at_ += sizeof value;
  }
  // Makes `arguments`, a va_list that was started or copied, deliver the arguments added.
  void set(va_list arguments) const {
    arguments->gp_offset = 6 * 8;           // the registers for integers are used up
    arguments->fp_offset = 6 * 8 + 8 * 16;  // and those for floating point
    arguments->overflow_arg_area = begin_;
  }

 private:
  char* begin_;
  char* at_;
};

// Reads the parts that the formats of printf and scanf share.
class FormatReader {
 public:
  explicit FormatReader(const char* format) : at_(format) {}
  // Moves past the next '%', or returns false at the end.
  bool find_conversion() {
    at_ = strchrnul(at_, '%');
    return *at_ != 0 && *++at_ != 0;
  }
  char peek() const { return *at_; }
  char take() { return *at_ != 0 ? *at_++ : '\0'; }
  const char* position() const { return at_; }
  void skip_any(const char* set) { at_ += strspn(at_, set); }
  bool skip(char c) { return *at_ == c && ++at_; }
  // Digits, as a number that does not overflow; -1 when there are none.
  int number();
  // "3$": the index, from 0, of a numbered argument; -1, and nothing read, when there is none.
  int argument_index();
  // hh h l ll L q j z Z t: 'H' 'h' 'l' 'L' for hh h l and the long ones, 0 for none; z, t and j are as
  // wide as l.
  char length_modifier();

 private:
  const char* at_;
};

}  // namespace spill
