// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream/internal/key_places.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace warpline::stream {
namespace {

TEST(KeyPlaces, EraseNothingThatIsNotInTheTable) {
  std::vector<std::uint32_t> places(8, KeyPlaces::kNone);
  KeyPlaces table(places.data(), places.size() - 1, 77);
  std::array<ConnectionKey, 4> keys;
  for (std::uint16_t i = 0; i < keys.size(); ++i) keys[i].remote_port = i;
  const auto key_of = [&keys](std::uint32_t index) -> const ConnectionKey& { return keys[index]; };
  table.erase(0, key_of);
  for (const std::uint32_t index : {0U, 1U, 2U}) table.insert(keys[index], index);
  table.erase(3, key_of);
  table.erase(1, key_of);
  table.erase(1, key_of);
  EXPECT_EQ(table.find(keys[0], key_of), 0U);
  EXPECT_EQ(table.find(keys[1], key_of), KeyPlaces::kNone);
  EXPECT_EQ(table.find(keys[2], key_of), 2U);
  EXPECT_EQ(table.find(keys[3], key_of), KeyPlaces::kNone);
}

}  // namespace
}  // namespace warpline::stream
