//===- Address.h - What an address is made of -------------------*- C++ -*-===//
//
// Two pointers with the same terms differ by the difference of their offsets,
// wherever the values they are made of are both available. An index that takes
// few values, such as the side of a tree's node, is no term: it makes the
// address one of a small range. Pointers that a loop carries side by side are one
// term.
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_ADDRESS_H
#define SPILLWAY_COMPILER_ADDRESS_H

#include <cstdint>
#include <vector>

namespace llvm {
class DataLayout;
class Value;
} // namespace llvm

namespace spillway {

struct Address {
  std::vector<uint64_t> Terms; // base, then (index, extension, scale) in order
  int64_t Offset;              // constant, bytes
  uint64_t Extent;             // the address is up to so many bytes higher
};

Address decompose(llvm::Value *Pointer, const llvm::DataLayout &DL);

} // namespace spillway

#endif
