#include "spill/intercept/format.h"

namespace spill {

int FormatReader::number() {
  if (*at_ < '0' || *at_ > '9') return -1;
  int value = 0;
  for (; *at_ >= '0' && *at_ <= '9'; ++at_) value = value > 100'000'000 ? value : value * 10 + (*at_ - '0');
  return value;
}

int FormatReader::argument_index() {
  const char* start = at_;
  const int value = number();
  // The C library allows 4096 arguments.
  if (value >= 1 && value <= 4096 && skip('$')) return value - 1;
  at_ = start;
  return -1;
}

char FormatReader::length_modifier() {
  switch (peek()) {
    case 'h': return ++at_, skip('h') ? 'H' : 'h';
    case 'l': return ++at_, skip('l') ? 'L' : 'l';
    case 'L':
    case 'q': return ++at_, 'L';
    case 'j':
    case 'z':
    case 'Z':
    case 't': return ++at_, 'l';
    default: return 0;
  }
}

}  // namespace spill
