// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "warpline/message/datagram.h"
#include "warpline/message/types.h"

namespace warpline::message {

/// A packet for someone without a session.
struct StrayReply {
  static constexpr std::uint32_t kMaxLength = 64;
  PeerAddress to;
  std::uint32_t length = 0;
  std::array<std::uint8_t, kMaxLength> bytes;
};

/// Answers to strangers that wait for transmit(), first in, first out, and no more than there is room for: what
/// strangers send makes nothing grow.
class StrayReplies {
 public:
  static constexpr std::uint32_t kUnknownPeers = 256;  ///< places for replies to unknown peers

  explicit StrayReplies(std::uint32_t capacity) : replies_(capacity) {}

  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] bool full() const { return count_ == replies_.size(); }

  /// The next one, to be written by the caller; not if full().
  [[nodiscard]] StrayReply& add(const PeerAddress& to) {
    StrayReply& reply = replies_[(first_ + count_++) % replies_.size()];
    reply.to = to;
    return reply;
  }

  /// The oldest becomes `out`; not if empty().
  void take(Outgoing& out) {
    const StrayReply& reply = replies_[first_];
    first_ = (first_ + 1) % replies_.size();
    --count_;
    std::copy_n(reply.bytes.begin(), reply.length, out.head);
    out.head_length = reply.length;
    out.to = reply.to;
  }

 private:
  std::vector<StrayReply> replies_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

}  // namespace warpline::message
