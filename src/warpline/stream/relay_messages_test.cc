// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream/relay_messages.h"

#include <gtest/gtest.h>

#include <vector>

namespace warpline::stream {
namespace {

TEST(RelayMessages, AreReadAsTheyWereWritten) {
  const SocketAddress v4{Ipv4Address{{192, 0, 2, 1}}, 40'000};
  const SocketAddress v6{Ipv6Address{{0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9}}, 443};
  for (const RelayedBegin& begin : {RelayedBegin{v4, v6}, RelayedBegin{v6, v4}}) {
    EXPECT_EQ(decode_begin(encode(begin)), begin);
  }
  const RelayedEnd end{ConnectionState::reset, 0x0123'4567'89ab'cdef};
  EXPECT_EQ(decode_end(encode(end)), end);
}

TEST(RelayMessages, OfAnotherLengthOrStateAreNone) {
  std::vector<std::uint8_t> begin(RelayedBegin::kBytes - 1);
  EXPECT_FALSE(decode_begin(begin));
  begin.resize(RelayedBegin::kBytes + 1);
  EXPECT_FALSE(decode_begin(begin));
  std::vector<std::uint8_t> end(RelayedEnd::kBytes);
  EXPECT_FALSE(decode_end(end));  // open is no end
  end[0] = 4;
  EXPECT_FALSE(decode_end(end));
  end[0] = 3;
  EXPECT_EQ(decode_end(end)->state, ConnectionState::timed_out);
  end.push_back(0);
  EXPECT_FALSE(decode_end(end));
}

}  // namespace
}  // namespace warpline::stream
