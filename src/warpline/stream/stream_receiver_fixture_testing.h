// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <utility>

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

/// A receiver of small_settings(), and its time.
class ReceiverTest : public ::testing::Test {
 protected:
  ConnectionId open(Peer& peer) {
    EXPECT_TRUE(peer.open(now_));
    const auto event = receiver_.poll();
    EXPECT_TRUE(event);
    return event ? event->connection : ConnectionId{};
  }

  Nanos now_ = milliseconds(1);
  StreamReceiver receiver_ = receiver_with(small_settings());
};

}  // namespace warpline::stream::testing
