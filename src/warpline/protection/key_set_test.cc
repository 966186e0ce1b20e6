// SPDX-License-Identifier: Apache-2.0
#include "warpline/protection/key_set.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>

#include "warpline/protection/protection_testing.h"

namespace warpline::protection {
namespace {

GivenKey given(std::uint8_t byte, std::string name = {}) {
  GivenKey key{.name = std::move(name)};
  key.secret.fill(byte);
  return key;
}

std::shared_ptr<const KeySet> set_of_given(std::vector<GivenKey> keys) {
  auto set = KeySet::make(keys);
  EXPECT_TRUE(set.ok());
  return *set;
}

TEST(KeySet, FindsEachByAnIdThatDoesNotShowItsSecret) {
  std::vector<GivenKey> keys;
  for (int i = 0; i < 200; ++i) keys.push_back(given(static_cast<std::uint8_t>(i)));
  const auto set = set_of_given(keys);
  ASSERT_EQ(set->keys().size(), 200U);
  std::set<message::KeyId> ids;
  for (std::size_t i = 0; i < 200; ++i) {
    const Key& key = set->keys()[i];
    EXPECT_EQ(key.secret, keys[i].secret) << "in their order";
    EXPECT_EQ(set->find(key.id), &key);
    EXPECT_NE(key.id, 0U);
    EXPECT_NE(key.id, 0x0101010101010101U * i);
    ids.insert(key.id);
  }
  EXPECT_EQ(ids.size(), 200U);
  EXPECT_EQ(set->find(0), nullptr);
  EXPECT_EQ(set->find(set->keys()[0].id + 1), nullptr);
  EXPECT_EQ(set_of_given({given(7)})->keys()[0].id, set->keys()[7].id) << "both ends make the same id";
}

TEST(KeySet, RefusesNoneAndTheSameTwice) {
  EXPECT_FALSE(KeySet::make({}).ok());
  for (const auto& keys : {std::vector{given(1), given(1, "b")}, std::vector{given(1, "a"), given(2, "a")}}) {
    const auto set = KeySet::make(keys);
    ASSERT_FALSE(set.ok());
    EXPECT_EQ(set.error().kind, ErrorKind::usage);
  }
  EXPECT_TRUE(KeySet::make(std::vector{given(1), given(2)}).ok()) << "no name is no name in common";
}

TEST(KeySet, Names) {
  for (const char* name : {"a", "client-7.lab_2", "00112233445566778899aabbccddeefg"}) {
    EXPECT_TRUE(is_key_name(name)) << name;
  }
  for (const char* name :
       {"", "a b", "a#", "00112233445566778899aabbccddeeff", "a23456789012345678901234567890123", "\xc3\xa4"}) {
    EXPECT_FALSE(is_key_name(name)) << name;
  }
}

TEST(KeySet, ChangesAreToldByNameOrId) {
  const auto before = set_of_given({given(1, "old"), given(2), given(3, "x")});
  EXPECT_EQ(describe_change(*before, *before), "nothing changed; 3 in all");
  const auto after = set_of_given({given(4, "new"), given(3, "y"), given(5, "more")});
  const std::string second = label(before->keys()[1]);
  EXPECT_EQ(second.size(), 16U);
  EXPECT_EQ(describe_change(*before, *after), "added new, more; removed old, " + second + "; renamed y; 3 in all");
}

TEST(Keys, AreReplacedUnderWhoReadsThem) {
  Keys keys(set_of_given({given(1)}));
  const std::uint64_t first = keys.version();
  std::thread reader([&] {
    std::uint64_t seen = 0;
    while (seen != 1001) {
      const std::uint64_t version = keys.version();
      if (version == seen) continue;
      seen = version;
      const auto set = keys.get();
      EXPECT_EQ(set->find(set->keys().front().id), &set->keys().front());
    }
  });
  for (int i = 0; i < 1000; ++i) keys.replace(set_of_given({given(static_cast<std::uint8_t>(i + 1))}));
  reader.join();
  EXPECT_EQ(keys.version(), first + 1000);
}

}  // namespace
}  // namespace warpline::protection
