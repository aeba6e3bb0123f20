//===- Address.h - What an address is made of -------------------*- C++ -*-===//
//
// An address is a sum of terms and a constant. Two pointers with the same terms
// differ by the difference of their offsets wherever the values in the terms
// are available. An index with few values, such as the side of a tree's node,
// is not a term but an extent: the address lies in a small range. Pointers that
// a loop carries side by side have the same term.
//
//===----------------------------------------------------------------------===//
#ifndef SPILLWAY_COMPILER_ADDRESS_H
#define SPILLWAY_COMPILER_ADDRESS_H

#include <cstdint>
#include <vector>

namespace llvm {
class APInt;
class DataLayout;
class Value;
} // namespace llvm

namespace spillway {

struct Address {
  /// The base, then (index, whether it is zero-extended, scale) of each term,
  /// in an order that depends only on these. Values are represented by the
  /// addresses of LLVM's objects.
  std::vector<uint64_t> Terms;
  int64_t Offset;  // bytes
  uint64_t Extent; // the address is from 0 to this many bytes above the offset
};

Address decompose(llvm::Value *Pointer, const llvm::DataLayout &DL);

/// The pointer from which V is at a constant distance, Offset; V itself if
/// there is none. Does not look through a cast from another address space: what
/// is computed from the cast's operand would be accessed in that space.
llvm::Value *baseOf(llvm::Value *V, const llvm::DataLayout &DL,
                    llvm::APInt &Offset);

} // namespace spillway

#endif
