// Stands for a fuzzer in the test of replay.cc: its inputs say how they end.
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t) {
  if (data[0] == 0xaa) abort();
  if (data[0] == 0xee) _Exit(data[1]);
  return 0;
}
