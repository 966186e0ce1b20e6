// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "warpline/packet/frame_testing.h"

namespace warpline::vnic {

/// Numbered ECN-capable UDP frames, and what a wire with faults has done to one of them, found out from its bytes
/// alone.
class WireFrames {
 public:
  static constexpr std::size_t kMinLength = 60;

  WireFrames(std::uint32_t count, std::size_t length, std::uint64_t salt);

  [[nodiscard]] const packet::FrameBytes& operator[](std::uint32_t number) const { return frames_[number]; }
  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(frames_.size()); }

  struct Finding {
    bool foreign = false;                 ///< none of these frames, whatever the faults
    std::optional<std::uint32_t> number;  ///< none for a stub that several frames begin with
    bool truncated = false;
    bool corrupted = false;  ///< one bit
    bool marked = false;     ///< congestion experienced, and the IPv4 checksum is right again
  };
  [[nodiscard]] Finding look_at(const packet::FrameBytes& received) const;

 private:
  /// `received` as a beginning of frame `number`.
  [[nodiscard]] Finding compare(const packet::FrameBytes& received, std::uint32_t number) const;

  std::vector<packet::FrameBytes> frames_;
  std::vector<packet::FrameBytes> marked_;
};

}  // namespace warpline::vnic
