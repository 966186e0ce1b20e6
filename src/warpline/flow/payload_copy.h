// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/frame.h"
#include "warpline/packet/frame_bytes.h"

namespace warpline::flow {

/// Copies bytes `[offset, offset + length)` of the packet, which has them, to `to`.
inline void copy_payload(std::uint8_t* to, FrameRef packet, std::uint32_t offset, std::uint32_t length) {
  static_cast<void>(packet::gather(packet, offset, length, to));
}

}  // namespace warpline::flow
