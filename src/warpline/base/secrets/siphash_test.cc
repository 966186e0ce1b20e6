// SPDX-License-Identifier: Apache-2.0
#include "warpline/base/secrets/siphash.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace warpline {
namespace {

// Key 00 01 .. 0f, messages 00 01 .. of each length: of the paper's appendix A and its reference implementation.
TEST(SipHash, gives_the_values_of_its_paper) {
  std::array<std::uint8_t, 16> key;
  std::iota(key.begin(), key.end(), std::uint8_t{0});
  std::vector<std::uint8_t> message(15);
  std::iota(message.begin(), message.end(), std::uint8_t{0});
  const auto hash = [&](std::size_t length) {
    return siphash(sip_key(key), std::span<const std::uint8_t>(message.data(), length));
  };
  EXPECT_EQ(hash(0), 0x726fdb47dd0e0e31U);
  EXPECT_EQ(hash(1), 0x74f839c593dc67fdU);
  EXPECT_EQ(hash(15), 0xa129ca6149be45e5U);
}

}  // namespace
}  // namespace warpline
