// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Headers of packets: parse, check, build, checksums. No I/O; the same on a host and on a GPU.
/// Library warpline::packet.
///
/// @code
/// #include <cstdio>
///
/// #include "warpline/packet.h"
///
/// int main() {
///   std::uint8_t bytes[60] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5};
///   warpline::Segment segment{bytes, sizeof bytes, 0, warpline::Verdict::forward};
///   const warpline::packet::ParsedFrame parsed = warpline::packet::parse({&segment, 1, segment.length});
///   std::printf("dropped: %d, UDP: %d\n", warpline::is_drop(parsed.verdict), parsed.l4 ==
///   warpline::packet::L4Kind::udp);
/// }
/// @endcode

#include "warpline/base/frame.h"
#include "warpline/base/result.h"
#include "warpline/base/verdict.h"
#include "warpline/packet/parse.h"
#include "warpline/packet/responder.h"
#include "warpline/packet/verify.h"
