// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "warpline/stream/stream_receiver_testing.h"

namespace warpline::stream::testing {

inline StreamReceiver receiver_with(const ReceiverSettings& settings) {
  return std::move(StreamReceiver::create(settings, milliseconds(1))).value();
}

/// Releases all that can be read; how many bytes, or nothing if one is wrong.
inline std::optional<std::uint64_t> consume(StreamReceiver& receiver, ConnectionId id) {
  const auto view = receiver.view(id);
  if (!view) return std::nullopt;
  for (std::size_t i = 0; i < view->bytes.size(); ++i) {
    if (view->bytes[i] != pattern_at(view->begin + i)) return std::nullopt;
  }
  return receiver.release(id, view->bytes.size()) ? std::optional(view->bytes.size()) : std::nullopt;
}

inline std::uint64_t window_of(const Reply& reply, std::uint8_t scale) {
  return std::uint64_t{reply.tcp().window} << scale;
}

/// When nothing is due.
inline constexpr Nanos kNoDeadline{std::numeric_limits<std::int64_t>::max()};

/// A receiver of small_settings(), its time, and a peer of it.
class ReceiverTest : public ::testing::Test {
 protected:
  void use(const ReceiverSettings& settings) { receiver_ = receiver_with(settings); }
  ConnectionId open(Peer& peer) {
    EXPECT_TRUE(peer.open(now_));
    const auto event = receiver_.poll();
    EXPECT_TRUE(event);
    return event ? event->connection : ConnectionId{};
  }
  ConnectionId open() { return open(peer_); }
  /// Returns all that it wants to send now.
  std::vector<Reply> take_replies() { return replies_of(receiver_, now_); }
  /// The same at the end of a burst.
  std::vector<Reply> finish_burst() {
    receiver_.end_burst(now_);
    return take_replies();
  }

  Nanos now_ = milliseconds(1);
  StreamReceiver receiver_ = receiver_with(small_settings());
  Peer peer_{receiver_, 40000, 7};
};

}  // namespace warpline::stream::testing
