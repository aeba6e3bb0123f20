#include "persist/domains.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <thread>

namespace persist {
namespace {

Domain domain(uintptr_t begin, uintptr_t end, int descriptor = -1) {
  return {.begin = begin, .end = end, .kind = DomainKind::kFile, .device = nullptr, .descriptor = descriptor};
}

TEST(Domains, TellWhereAnAddressIs) {
  const auto domains = std::make_unique<Domains>();
  const Domains::Found nothing = domains->find(4096);
  EXPECT_FALSE(nothing.is_inside);
  EXPECT_EQ(nothing.domain.begin, 0u);
  EXPECT_EQ(nothing.domain.end, ~uintptr_t{0});
  ASSERT_TRUE(domains->add(domain(0x3000, 0x4000, 3)));
  ASSERT_TRUE(domains->add(domain(0x1000, 0x2000, 1)));
  EXPECT_EQ(domains->find(0x1000).domain.descriptor, 1);
  EXPECT_EQ(domains->find(0x1fff).domain.descriptor, 1);
  EXPECT_EQ(domains->find(0x3fff).domain.descriptor, 3);
  const Domains::Found between = domains->find(0x2000);
  EXPECT_FALSE(between.is_inside);
  EXPECT_EQ(between.domain.begin, 0x2000u);
  EXPECT_EQ(between.domain.end, 0x3000u);
  EXPECT_EQ(domains->find(0x4000).domain.begin, 0x4000u);
  EXPECT_EQ(domains->find(0).domain.end, 0x1000u);
}

TEST(Domains, RefuseWhatOverlapsAndWhatIsNoLine) {
  const auto domains = std::make_unique<Domains>();
  ASSERT_TRUE(domains->add(domain(0x1000, 0x2000)));
  EXPECT_EQ(domains->add(domain(0x1fc0, 0x3000)).error().number, EEXIST);
  EXPECT_EQ(domains->add(domain(0x0, 0x1040)).error().number, EEXIST);
  EXPECT_TRUE(domains->add(domain(0x2000, 0x3000)));
  EXPECT_EQ(domains->add(domain(0x5000, 0x5000)).error().number, EINVAL);
  EXPECT_EQ(domains->add(domain(0x5000, 0x5020)).error().number, EINVAL);
  for (uintptr_t i = 2; i < Domains::kMaxDomains; ++i)
    ASSERT_TRUE(domains->add(domain(0x10000 * i, 0x10000 * i + 64)));
  EXPECT_EQ(domains->add(domain(0x7000, 0x8000)).error().number, ENOSPC);
}

// Domains of this kind only say that nobody has to look there again.
TEST(Domains, OfKindNoneMakeWay) {
  const auto domains = std::make_unique<Domains>();
  const auto none = [](uintptr_t begin, uintptr_t end) {
    Domain made = domain(begin, end);
    made.kind = DomainKind::kNone;
    return made;
  };
  for (uintptr_t i = 0; i < Domains::kMaxDomains; ++i)
    ASSERT_TRUE(domains->add(none(0x10000 * i, 0x10000 * i + 0x1000)));
  EXPECT_EQ(domains->add(none(0x9000, 0xa000)).error().number, ENOSPC);
  EXPECT_EQ(domains->add(none(0x20000, 0x20040)).error().number, EEXIST);
  ASSERT_TRUE(domains->add(domain(0x9000, 0xa000)));
  EXPECT_EQ(domains->size(), Domains::kMaxDomains);
  ASSERT_TRUE(domains->add(domain(0x20800, 0x30800)));
  EXPECT_EQ(domains->find(0x20800).domain.kind, DomainKind::kFile);
  EXPECT_FALSE(domains->find(0x20000).is_inside);
  EXPECT_FALSE(domains->find(0x30800).is_inside);
  EXPECT_TRUE(domains->find(0x40000).is_inside);
  EXPECT_EQ(domains->add(domain(0x9fc0, 0xb000)).error().number, EEXIST);
}

TEST(Domains, LoseWhatIsRemoved) {
  const auto domains = std::make_unique<Domains>();
  ASSERT_TRUE(domains->add(domain(0x1000, 0x5000, 1)));
  const uint64_t version = domains->version();
  EXPECT_FALSE(domains->remove(0x5000, 0x6000));
  EXPECT_EQ(domains->version(), version);
  EXPECT_TRUE(domains->remove(0x2000, 0x3000));
  EXPECT_NE(domains->version(), version);
  EXPECT_EQ(domains->size(), 2u);
  EXPECT_TRUE(domains->find(0x1fff).is_inside);
  EXPECT_FALSE(domains->find(0x2000).is_inside);
  EXPECT_EQ(domains->find(0x3000).domain.descriptor, 1);
  EXPECT_TRUE(domains->remove(0, ~uintptr_t{0}));
  EXPECT_EQ(domains->size(), 0u);
}

TEST(Domains, LoseTheRestOfOneThatThereIsNoPlaceForAndNoOther) {
  const auto domains = std::make_unique<Domains>();
  constexpr auto begin_of = [](size_t i) { return 0x10000 * (i + 1); };
  for (size_t i = 0; i < Domains::kMaxDomains; ++i)
    ASSERT_TRUE(domains->add(domain(begin_of(i), begin_of(i) + 0x1000)));
  EXPECT_EQ(domains->removal_end(begin_of(5) + 0x400, begin_of(5) + 0x800), begin_of(5) + 0x1000);
  EXPECT_TRUE(domains->remove(begin_of(5) + 0x400, begin_of(5) + 0x800));
  EXPECT_EQ(domains->size(), Domains::kMaxDomains);
  for (size_t i = 0; i < Domains::kMaxDomains; ++i) {
    EXPECT_TRUE(domains->find(begin_of(i)).is_inside) << i;
    EXPECT_EQ(domains->find(begin_of(i) + 0xfff).is_inside, i != 5) << i;
  }
  // Removing a part at an end makes no more domains; and once there is a place, the middle is removed alone.
  EXPECT_TRUE(domains->remove(begin_of(6) + 0x800, begin_of(6) + 0x2000));
  EXPECT_TRUE(domains->remove(begin_of(0), begin_of(1)));
  EXPECT_EQ(domains->removal_end(begin_of(7) + 0x400, begin_of(7) + 0x800), begin_of(7) + 0x800);
  EXPECT_TRUE(domains->remove(begin_of(7) + 0x400, begin_of(7) + 0x800));
  EXPECT_TRUE(domains->find(begin_of(7) + 0x800).is_inside);
}

// Random adds and removals, compared with a map of lines.
TEST(Domains, AreWhatAMapOfAllLinesSays) {
  std::mt19937_64 random(7);
  const auto domains = std::make_unique<Domains>();
  constexpr uintptr_t kLines = 200;
  std::map<uintptr_t, int> model;
  for (int step = 0; step < 3'000; ++step) {
    const uintptr_t begin = random() % kLines, end = begin + 1 + random() % 20;
    if (random() % 2 == 0) {
      bool is_free = true;
      for (uintptr_t i = begin; i < end; ++i) is_free &= !model.contains(i);
      ASSERT_EQ(domains->add(domain(begin * 64, end * 64, step)).has_value(), is_free);
      if (is_free)
        for (uintptr_t i = begin; i < end; ++i) model[i] = step;
    } else {
      domains->remove(begin * 64, end * 64);
      for (uintptr_t i = begin; i < end; ++i) model.erase(i);
    }
    const uintptr_t asked = random() % (kLines + 20);
    const Domains::Found found = domains->find(asked * 64 + 63);
    ASSERT_EQ(found.is_inside, model.contains(asked));
    if (found.is_inside) {
      ASSERT_EQ(found.domain.descriptor, model[asked]);
    }
    ASSERT_TRUE(found.domain.holds(asked * 64 + 63));
    for (uintptr_t i = found.domain.begin / 64; i < std::min(found.domain.end / 64, kLines + 20); ++i)
      ASSERT_EQ(model.contains(i), found.is_inside);
  }
}

// Whoever reads during changes sees domains as they were at one moment.
TEST(Domains, AreReadWhole) {
  const auto domains = std::make_unique<Domains>();
  std::atomic<bool> is_over{false};
  std::thread reader([&] {
    while (!is_over.load()) {
      const Domains::Found found = domains->find(0x1800);
      if (found.is_inside) {
        ASSERT_EQ(found.domain.end - found.domain.begin,
                  0x1000u + 64u * static_cast<unsigned>(found.domain.descriptor));
      }
    }
  });
  for (int i = 0; i < 20'000; ++i) {
    const int kind = i % 7;
    ASSERT_TRUE(domains->add(domain(0x1000, 0x2000 + 64u * static_cast<unsigned>(kind), kind)));
    domains->remove(0x1000, 0x3000);
  }
  is_over = true;
  reader.join();
}

}  // namespace
}  // namespace persist
