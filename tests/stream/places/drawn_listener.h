// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "warpline/base/random.h"
#include "warpline/base/units.h"
#include "warpline/stream/stream_receiver_testing.h"

namespace warpline::stream {

/// A host that receives one connection of a StreamSender, and does what a generator of random numbers says: it
/// acknowledges some of what arrives, selectively or not, closes and shrinks its window, throws stored bytes away,
/// sends bytes and a FIN of its own, forges numbers, resets, and falls silent. It checks each frame that it receives.
class DrawnListener {
 public:
  using Frame = std::vector<std::uint8_t>;
  /// The two ends, and how large the sender's frames may be.
  struct Ends {
    IpAddress sender;
    IpAddress listener;
    std::uint16_t sender_port = 0;
    std::uint16_t mtu = 1500;
  };

  /// `stream` names the bytes that the sender sends to it.
  DrawnListener(const Ends& ends, std::uint64_t stream, Random& random);

  /// Returns byte `offset` of the stream of that name.
  [[nodiscard]] static std::uint8_t byte_at(std::uint64_t stream, std::uint64_t offset) {
    return testing::pattern_at(stream * 1'000'003 + offset);
  }

  /// Takes a frame of the sender, and appends what it answers. Returns what is wrong with the frame; empty if nothing.
  [[nodiscard]] std::string_view hear(const testing::Reply& segment, std::span<const std::uint8_t> payload, Nanos now,
                                      std::vector<Frame>& out);
  /// Appends what it sends unasked, perhaps nothing.
  void act(Nanos now, std::vector<Frame>& out);
  /// From now on it receives as a well-behaved host does.
  void calm_down() { calm_ = true; }

  // What it has done so far, in frames that may be lost.
  [[nodiscard]] bool has_reset() const { return has_reset_; }
  [[nodiscard]] bool is_silent() const { return silent_; }
  [[nodiscard]] std::uint64_t acknowledged() const { return next_; }  ///< bytes
  [[nodiscard]] bool has_acknowledged_end() const { return fin_ && next_ == fin_at_; }
  [[nodiscard]] bool has_end() const { return fin_; }
  [[nodiscard]] std::uint64_t end() const { return fin_at_; }  ///< where the sender's FIN is

 private:
  [[nodiscard]] std::uint32_t number(std::uint64_t offset) const {
    return peer_initial_ + 1 + static_cast<std::uint32_t>(offset);
  }
  [[nodiscard]] std::uint32_t own_number(std::uint64_t offset) const {
    return initial_ + 1 + static_cast<std::uint32_t>(offset);
  }
  [[nodiscard]] std::uint32_t own_next() const { return own_number(own_sent_ + (own_fin_ ? 1 : 0)); }
  [[nodiscard]] bool often() { return calm_ || random_.below(3) != 0; }
  [[nodiscard]] bool one_in(std::uint64_t n) { return !calm_ && random_.below(n) == 0; }
  [[nodiscard]] std::uint32_t largest_segment() const;

  std::string_view hear_syn(const testing::Reply& segment, Nanos now, std::vector<Frame>& out);
  [[nodiscard]] std::string_view check(const testing::Reply& segment, std::span<const std::uint8_t> payload,
                                       std::int64_t offset) const;
  void store(std::uint64_t begin, std::uint64_t end);
  void answer(bool must, bool again, std::pair<std::uint64_t, std::uint64_t> arrived, Nanos now,
              std::vector<Frame>& out);
  void reset(Nanos now, std::vector<Frame>& out);
  void send_own(Nanos now, std::vector<Frame>& out);
  [[nodiscard]] std::uint16_t draw_window(bool scales);

  /// A segment that acknowledges what has arrived.
  [[nodiscard]] Frame acknowledgement(Nanos now, std::pair<std::uint64_t, std::uint64_t> twice = {});
  [[nodiscard]] Frame frame(std::uint32_t sequence, std::uint32_t acknowledgement, std::uint8_t flags,
                            std::uint32_t length, std::pair<std::uint64_t, std::uint64_t> twice, Nanos now);

  Random& random_;
  Ends ends_;
  std::uint64_t stream_;
  std::uint32_t initial_;
  std::uint32_t peer_initial_ = 0;
  std::uint16_t mss_;  ///< 0: it names none
  bool selective_;
  bool timestamps_;
  bool scales_;
  bool fair_;  ///< it neither shrinks its window nor throws stored bytes away
  bool crosses_;
  bool known_ = false;  ///< a SYN arrived
  bool open_ = false;   ///< something behind the handshake arrived
  bool calm_ = false;
  bool silent_ = false;  ///< it says nothing any more
  bool closed_ = false;  ///< it was reset, or reset the connection
  bool has_reset_ = false;
  std::uint32_t echo_ = 0;

  // The sender's stream.
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, std::uint64_t> stored_;  ///< behind `next_`: beginnings and ends
  std::uint64_t edge_ = 0;                         ///< the furthest end of a window that it announced
  std::uint64_t fin_at_ = 0;
  bool fin_ = false;

  // Its own.
  std::uint64_t own_total_;
  std::uint64_t own_sent_ = 0;
  std::uint64_t own_acknowledged_ = 0;
  bool own_fin_ = false;
  bool own_fin_acknowledged_ = false;
};

}  // namespace warpline::stream
