// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/frame.h"
#include "warpline/base/host_device.h"

namespace warpline::handoff::testing {

enum class Break : std::uint8_t {
  fault,  ///< a store to where nothing is
  hang,   ///< a kernel that never ends
};

/// Breaks a GPU with the first frame, and forwards frames on a host.
struct BreakGpu {
  static constexpr bool kStateless = true;

  Break how;

  WARPLINE_HD Verdict operator()(FrameRef frame) const {
#if defined(__CUDA_ARCH__)
    auto* const word = reinterpret_cast<volatile std::uint8_t*>(how == Break::fault ? nullptr : frame.data());
    do {
      *word = 1;
    } while (how == Break::hang);
#else
    static_cast<void>(frame);
#endif
    return Verdict::forward;
  }
};

/// Counts frames again and again: to keep its state takes a kernel longer than a host takes to fill the next burst.
struct CountOften {
  std::uint64_t frames[64] = {};
  WARPLINE_HD Verdict operator()(FrameRef frame) {
    static_cast<void>(frame);
    for (std::uint64_t& count : frames) ++count;
    return Verdict::forward;
  }
};

/// The least that work on a packet can be: a read and a write of its first 16 bytes.
struct TouchFirstWords {
  static constexpr bool kStateless = true;

  struct alignas(16) Words {
    std::uint32_t word[4];
  };

  WARPLINE_HD Verdict operator()(FrameRef frame) const {
    auto* const words = reinterpret_cast<Words*>(frame.data());
    Words copy = *words;
    ++copy.word[0];
    *words = copy;
    return Verdict::forward;
  }
};

}  // namespace warpline::handoff::testing
