// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <rte_mbuf.h>

#include "warpline/base/verdict.h"
#include "warpline/capture/capture_source.h"
#include "warpline/capture/pcapng.h"
#include "warpline/port/port_queue.h"

namespace warpline::datapath {

/// Copies a packet that passes a queue at `ticks`, as its first bytes are now, if `source` wants it. Its bytes are
/// where the CPU reads them. Thread of the source.
void capture_mbuf(capture::CaptureSource& source, const rte_mbuf& mbuf, port::PortQueue at,
                  capture::Direction direction, Verdict verdict, std::uint64_t ticks);

/// Copies packets that are about to be dropped.
void capture_drops(capture::CaptureSource& source, rte_mbuf* const* mbufs, std::uint16_t count, port::PortQueue at,
                   capture::Direction direction, Verdict reason);

}  // namespace warpline::datapath
