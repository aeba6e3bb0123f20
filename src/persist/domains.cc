#include "persist/domains.h"

#include <algorithm>

#include "base/ids.h"
#include "sys/spin.h"

namespace persist {

const char* name_of(DomainKind kind) {
  switch (kind) {
    case DomainKind::kMemory: return "memory";
    case DomainKind::kFlushOnFail: return "flush_on_fail";
    case DomainKind::kFile: return "file";
    case DomainKind::kDevice: return "device";
    case DomainKind::kNone: return "none";
  }
  return "";
}

Domain Domains::Cell::load() const {
  return {.begin = begin.load(std::memory_order_relaxed),
          .end = end.load(std::memory_order_relaxed),
          .kind = kind.load(std::memory_order_relaxed),
          .device = device.load(std::memory_order_relaxed),
          .descriptor = descriptor.load(std::memory_order_relaxed)};
}

void Domains::Cell::store(const Domain& domain) {
  begin.store(domain.begin, std::memory_order_relaxed);
  end.store(domain.end, std::memory_order_relaxed);
  kind.store(domain.kind, std::memory_order_relaxed);
  device.store(domain.device, std::memory_order_relaxed);
  descriptor.store(domain.descriptor, std::memory_order_relaxed);
}

void Domains::publish(const Domain* domains, size_t count) {
  const uint64_t version = version_.load(std::memory_order_relaxed);
  version_.store(version + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);  // pairs with the acquire fence in find()
  for (size_t i = 0; i < count; ++i) cells_[i].store(domains[i]);
  count_.store(count, std::memory_order_relaxed);
  version_.store(version + 2, std::memory_order_release);  // pairs with the acquire in version()
}

// Removes domains of kind none where the new domain is to be, and one more of that kind if there are too many domains. No flushes there are put off.
void Domains::make_way(const Domain& domain) {
  for (size_t i = 0; i < size();) {
    const Domain other = cells_[i].load();
    const bool is_in_the_way =
        size() == kMaxDomains || (domain.begin < other.end && other.begin < domain.end);
    if (other.kind != DomainKind::kNone || !is_in_the_way || !remove(other.begin, other.end)) ++i;
  }
}

base::Expected<void> Domains::add(const Domain& domain) {
  if (domain.begin >= domain.end || (domain.begin | domain.end) % base::kLineBytes != 0)
    return base::failure(
        EINVAL,
        "a domain is of whole lines of 64 bytes, one at least; give address and size as multiples of it");
  if (domain.kind != DomainKind::kNone) make_way(domain);
  Domain all[kMaxDomains];
  size_t count = 0, place = 0;
  for (size_t i = 0; i < size(); ++i) {
    const Domain other = cells_[i].load();
    if (other.begin < domain.end && domain.begin < other.end)
      return base::failure(EEXIST, "memory at ", base::Hex{domain.begin},
                           " is in a domain already; remove that first");
    all[count++] = other;
    if (other.begin < domain.begin) place = count;
  }
  if (count == kMaxDomains)
    return base::failure(ENOSPC, "there are ", kMaxDomains,
                         " domains already; remove some, or make one of neighbours");
  std::move_backward(all + place, all + count, all + count + 1);
  all[place] = domain;
  publish(all, count + 1);
  return {};
}

uintptr_t Domains::removal_end(uintptr_t begin, uintptr_t end) const {
  const Found found = find(begin);
  const bool would_be_two = found.is_inside && found.domain.begin < begin && end < found.domain.end;
  return would_be_two && size() == kMaxDomains ? found.domain.end : end;
}

bool Domains::remove(uintptr_t begin, uintptr_t end) {
  end = removal_end(begin, end);
  Domain left[kMaxDomains];
  size_t count = 0;
  bool is_changed = false;
  const auto keep = [&](Domain piece, uintptr_t piece_begin, uintptr_t piece_end) {
    piece.begin = piece_begin;
    piece.end = piece_end;
    if (piece_begin < piece_end) left[count++] = piece;
  };
  for (size_t i = 0; i < size(); ++i) {
    const Domain domain = cells_[i].load();
    if (domain.end <= begin || end <= domain.begin) {
      keep(domain, domain.begin, domain.end);
      continue;
    }
    is_changed = true;
    keep(domain, domain.begin, std::max(domain.begin, begin));
    keep(domain, std::min(domain.end, end), domain.end);
  }
  if (is_changed) publish(left, count);
  return is_changed;
}

Domains::Found Domains::find(uintptr_t address) const {
  for (int spins = 0;; ++spins) {
    Found found;
    found.version = version();
    const size_t count = std::min(size(), kMaxDomains);
    // The first domain that ends after the address.
    size_t low = 0, high = count;
    while (low < high) {
      const size_t middle = (low + high) / 2;
      if (cells_[middle].end.load(std::memory_order_relaxed) <= address)
        low = middle + 1;
      else
        high = middle;
    }
    const Domain next =
        low < count ? cells_[low].load() : Domain{.begin = ~uintptr_t{0}, .end = ~uintptr_t{0}};
    found.is_inside = next.holds(address);
    if (found.is_inside)
      found.domain = next;
    else
      found.domain = {.begin = low > 0 ? cells_[low - 1].end.load(std::memory_order_relaxed) : 0,
                      .end = next.begin};
    std::atomic_thread_fence(std::memory_order_acquire);  // pairs with the release fence in publish()
    if (found.version % 2 == 0 && version_.load(std::memory_order_relaxed) == found.version) return found;
    sys::spin(spins);
  }
}

}  // namespace persist
