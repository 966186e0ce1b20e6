// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "warpline/base/random.h"
#include "warpline/base/units.h"
#include "warpline/stream/stream_receiver_testing.h"

namespace warpline::stream {

/// A peer with one connection, which does what a generator of random numbers says.
class DrawnPeer {
 public:
  using Frame = std::vector<std::uint8_t>;

  DrawnPeer(std::uint16_t port, Random& random);

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] bool is_open() const { return open_; }
  /// Whether it does nothing any more, and another one may take its turn.
  [[nodiscard]] bool is_over() const { return over_; }
  /// Returns byte `offset` of the stream of the peer with that port.
  [[nodiscard]] static std::uint8_t byte_at(std::uint16_t port, std::uint64_t offset) {
    return testing::pattern_at(std::uint64_t{port} * 1'000'003 + offset);
  }

  /// Appends what it sends next, perhaps nothing.
  void act(Nanos now, std::vector<Frame>& out);
  /// Takes a frame of the receiver, and appends what it answers. False if the frame acknowledges what was never sent.
  [[nodiscard]] bool hear(const testing::Reply& reply, Nanos now, std::vector<Frame>& out);
  /// Appends its SYN.
  void connect(Nanos now, std::vector<Frame>& out);

 private:
  [[nodiscard]] std::uint32_t sequence(std::uint64_t offset) const {
    return initial_ + 1 + static_cast<std::uint32_t>(offset);
  }
  /// Returns a random number of bytes, at most `most`, that may be 0 only if `most` is.
  [[nodiscard]] std::uint32_t some(std::uint64_t most) const {
    return most == 0 ? 0 : static_cast<std::uint32_t>(1 + random_.below(most));
  }
  [[nodiscard]] Frame frame(std::uint32_t sequence, std::uint8_t flags, std::uint64_t offset, std::uint32_t length,
                            Nanos now) const;
  void send_new(Nanos now, std::vector<Frame>& out);
  void send_again(Nanos now, std::vector<Frame>& out) const;
  void send_forged(Nanos now, std::vector<Frame>& out) const;
  void send_end(Nanos now, std::vector<Frame>& out);
  void send_reset(bool behind_bytes, Nanos now, std::vector<Frame>& out);

  Random& random_;
  std::uint16_t port_;
  std::uint32_t initial_;
  bool has_options_;
  std::uint64_t total_;             ///< bytes of its stream
  std::uint64_t sent_ = 0;          ///< bytes, lost ones among them
  std::uint64_t acknowledged_ = 0;  ///< bytes, and its FIN
  std::uint64_t window_end_ = 0;
  std::uint32_t acknowledgement_ = 0;
  std::uint32_t echo_ = 0;
  std::uint8_t scale_ = 0;
  bool connecting_ = false;
  bool open_ = false;
  bool ended_ = false;  ///< its FIN was sent
  bool over_ = false;
};

}  // namespace warpline::stream
