// Domains: which domain an address is in.
//
// Invariants
//  1 domains do not overlap; they stand in the order of their addresses
//  2 readers take no lock: they read a version, what they need, and the version again; it is odd while something changes
//  3 what a reader has found holds as long as version() stays the same
//
// Thread contract: find() and version() by any thread at any time, and in signal handlers; add() and remove() under the caller's lock.
#pragma once
#include <atomic>

#include "base/error.h"
#include "persist/domain.h"

namespace persist {

class Domains {
 public:
  static constexpr size_t kMaxDomains = 256;

  // Domains of kind none make way for those of all other kinds. Errors: EINVAL: empty, or not of whole lines; EEXIST: it overlaps another; ENOSPC: there
  // are too many.
  base::Expected<void> add(const Domain& domain);
  // Removes what lies in [begin, end); a domain that is only partly in it loses that part, and becomes two if it was the middle. Returns whether anything
  // was there. If that would make more than kMaxDomains, all of the domain from `begin` on is removed: up to removal_end().
  bool remove(uintptr_t begin, uintptr_t end);
  uintptr_t removal_end(uintptr_t begin, uintptr_t end) const;

  // Makes all readers look again, although all domains stay as they are.
  void touch() { version_.fetch_add(2, std::memory_order_release); }

  uint64_t version() const { return version_.load(std::memory_order_acquire); }

  struct Found {
    // The domain that has the address, if is_inside; otherwise only `begin` and `end` are set, to the gap between domains that has the address.
    Domain domain;
    bool is_inside = false;
    uint64_t version = 0;  // of the domains, for which this holds
  };
  Found find(uintptr_t address) const;

  // Calls visit(domain) for each domain. Domains may change meanwhile; all that stay are visited.
  template <class Visit>
  void visit(const Visit& visit) const {
    for (uintptr_t address = 0;;) {
      const Found found = find(address);
      if (found.is_inside) visit(found.domain);
      if (found.domain.end == ~uintptr_t{0}) return;
      address = found.domain.end;
    }
  }
  size_t size() const { return count_.load(std::memory_order_relaxed); }

 private:
  // A Domain that is read and written by relaxed accesses, ordered by the version.
  struct Cell {
    std::atomic<uintptr_t> begin{0}, end{0};
    std::atomic<DomainKind> kind{DomainKind::kMemory};
    std::atomic<LineDevice*> device{nullptr};
    std::atomic<int> descriptor{-1};

    Domain load() const;
    void store(const Domain& domain);
  };
  // Writes all of them anew.
  void publish(const Domain* domains, size_t count);
  void make_way(const Domain& domain);

  std::atomic<uint64_t> version_{0};
  std::atomic<size_t> count_{0};
  Cell cells_[kMaxDomains];
};

}  // namespace persist
