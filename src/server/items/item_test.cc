#include "server/items/item.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace server {
namespace {

std::string store_text(const std::string& key) {
  storage::BufferPool pool;
  auto store_key = StoreKey::of(key, pool);
  EXPECT_TRUE(store_key) << store_key.error().message;
  return std::string(store_key->text());
}

const std::string kZero(1, '\0');

TEST(StoreKeyTest, IsTheClientsUnlessThatBeginsWithZeroOrIsEmpty) {
  EXPECT_EQ(store_text("key"), "key");
  EXPECT_EQ(store_text("k" + kZero), "k" + kZero);
  EXPECT_EQ(store_text(""), kZero);
  EXPECT_EQ(store_text(kZero), kZero + kZero);
  EXPECT_EQ(store_text(kZero + "\1flush"), kZero + kZero + "\1flush");
  for (const std::string& key :
       {std::string("key"), std::string(), kZero, kZero + kZero, kZero + "\1x", std::string("\1")})
    EXPECT_EQ(client_key(store_text(key)), key);
  EXPECT_EQ(client_key(kZero + "\1flush"), std::nullopt) << "the server's own";
  EXPECT_EQ(client_key(kZero + "\1"), std::nullopt);
}

TEST(StoreKeyTest, ALongerOneThanTheStoreTakesIsRefused) {
  storage::BufferPool pool;
  const std::string most(kMaxKeyBytes, '\0');
  EXPECT_EQ(store_text(most).size(), kv::kMaxKeyBytes);
  EXPECT_EQ(StoreKey::of(most + "k", pool).error().number, EINVAL);
  EXPECT_EQ(StoreKey::of(std::string(kMaxKeyBytes + 1, 'k'), pool).error().number, EINVAL);
}

// Moved, its memory moves with it.
TEST(StoreKeyTest, MayBeMoved) {
  storage::BufferPool pool;
  StoreKey key;
  key = *StoreKey::of(kZero + "x", pool);
  StoreKey other = *StoreKey::of(kZero + "y", pool);
  EXPECT_EQ(key.text(), kZero + kZero + "x");
  EXPECT_EQ(other.text(), kZero + kZero + "y");
}

TEST(ItemHeadTest, IsReadAsItWasWritten) {
  for (const bool is_stale : {false, true})
    for (const bool is_claimed : {false, true})
      for (const uint64_t cas : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}}) {
        const ItemHead head = {.marks = {.is_stale = is_stale, .is_claimed = is_claimed}, .own_cas = cas};
        std::array<std::byte, ItemHead::kMaxBytes> bytes = {};
        head.write(bytes.data());
        const auto read = ItemHead::read(std::span(bytes).first(head.bytes()));
        ASSERT_TRUE(read);
        EXPECT_EQ(read->marks, head.marks);
        EXPECT_EQ(read->own_cas, cas);
        EXPECT_EQ(read->bytes(), cas != 0 ? 9u : 1u);
      }
  std::byte byte;
  ItemHead{}.write(&byte);
  EXPECT_EQ(byte, std::byte{0}) << "docs/formats/server.md";
}

TEST(ItemHeadTest, WhatIsNoItemsIsRefused) {
  EXPECT_FALSE(ItemHead::read({}));
  std::array<std::byte, ItemHead::kMaxBytes> bytes = {};
  for (int marks = 8; marks < 256; ++marks) {
    bytes[0] = static_cast<std::byte>(marks);
    bytes[1] = std::byte{1};
    EXPECT_FALSE(ItemHead::read(bytes)) << marks;
  }
  bytes = {std::byte{4}, std::byte{7}};
  EXPECT_TRUE(ItemHead::read(bytes));
  EXPECT_FALSE(ItemHead::read(std::span(bytes).first(8))) << "cut short";
  bytes[1] = std::byte{0};
  EXPECT_FALSE(ItemHead::read(bytes)) << "a cas of 0";
}

}  // namespace
}  // namespace server
