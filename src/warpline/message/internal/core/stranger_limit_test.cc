// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/core/stranger_limit.h"

#include <gtest/gtest.h>

namespace warpline::message {
namespace {

constexpr std::int64_t kSeconds = 1'000'000'000;

PeerAddress stranger(std::uint32_t number) {
  return peer_address(Ipv4Address{{192, 0, static_cast<std::uint8_t>(number >> 8), static_cast<std::uint8_t>(number)}},
                      static_cast<std::uint16_t>(number));
}

/// Returns how many are admitted of a million packets within a second.
template <typename From>
std::uint32_t admitted(StrangerLimit& limit, std::int64_t from_time, const From& from) {
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < 1'000'000; ++i) count += limit.admits(from(i), Nanos{from_time + i * 1000}) ? 1 : 0;
  return count;
}

TEST(StrangerLimit, is_a_rate_and_half_of_it_for_an_address) {
  StrangerLimit limit(10'000, 1'000, {1, 2});
  const auto of_one = [&](std::uint32_t) { return stranger(1); };
  EXPECT_NEAR(admitted(limit, kSeconds, of_one), 5'000 + 500, 2);
  EXPECT_TRUE(limit.admits(stranger(2), Nanos{2 * kSeconds})) << "others have their part";
  EXPECT_NEAR(admitted(limit, 10 * kSeconds, stranger), 10'000 + 1'000, 2) << "of 65,536 addresses";
  EXPECT_NEAR(admitted(limit, 20 * kSeconds, of_one), 5'000 + 500, 2) << "silence is not saved up";
}

TEST(StrangerLimit, takes_another_rate) {
  StrangerLimit limit(10'000, 1'000, {1, 2});
  limit.set_rate(20'000, 2'000);
  EXPECT_NEAR(admitted(limit, kSeconds, stranger), 20'000 + 2'000, 2);
}

}  // namespace
}  // namespace warpline::message
