// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "script.h"
#include "warpline/stream/stream_receiver_testing.h"

namespace warpline::stream_script {

using FrameBytes = std::vector<std::uint8_t>;

/// What is compared of a segment that came.
struct Strictness {
  bool windows = true;     ///< the window's field; else only whether it is 0
  bool scales = true;      ///< the window scale's value; else only whether it is there
  bool timestamps = true;  ///< TSval; else only whether it is there
};

/// Turns the segments of a script into frames, and frames back into what scripts say: knows which numbers the two ends
/// of each connection began with.
class ScriptWire {
 public:
  explicit ScriptWire(const Script& script) : script_(script) {}

  static constexpr std::uint16_t kPort = stream::testing::kPort;
  [[nodiscard]] static IpAddress address(bool ipv6, bool receiver);  ///< of the receiver, or of all peers
  [[nodiscard]] static std::uint16_t port_of(std::uint32_t peer) { return static_cast<std::uint16_t>(40000 + peer); }

  /// Returns the frame of an injected segment.
  [[nodiscard]] FrameBytes frame_of(const Injected& segment);
  /// Reads a frame that the receiver sent; nothing, if it is no TCP segment with right checksums.
  [[nodiscard]] std::optional<stream::testing::Reply> read(FrameBytes& frame);
  /// Returns what is wrong with a segment, or an empty string.
  [[nodiscard]] std::string compare(const Expected& expected, const stream::testing::Reply& reply,
                                    Strictness strictness);
  /// Returns a reply as a script would say it, with relative numbers.
  [[nodiscard]] std::string describe(const stream::testing::Reply& reply);
  /// Returns what a reply acknowledges, relative to its peer's first number.
  [[nodiscard]] std::uint32_t acknowledged(const stream::testing::Reply& reply) const {
    return reply.tcp().acknowledgement - script_.peer_initial;
  }

 private:
  /// What the receiver began with towards one peer.
  struct Beginning {
    std::uint32_t sequence = 0;   ///< of its SYN; 0: none was seen, so that numbers are absolute
    std::uint32_t timestamp = 0;  ///< what is added to a script's TSval
    bool has_timestamp = false;
  };

  void learn(const Segment& expected, const stream::testing::Reply& reply);
  [[nodiscard]] FrameBytes options_of(const Injected& segment);
  [[nodiscard]] std::string compare_options(const Expected& expected, const stream::testing::Reply& reply,
                                            Strictness strictness);

  const Script& script_;
  std::map<std::uint32_t, Beginning> beginnings_;  ///< by peer
};

/// "S.", "R", ...
[[nodiscard]] std::string flags_text(std::uint8_t flags);

}  // namespace warpline::stream_script
