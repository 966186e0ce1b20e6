// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <rte_mbuf.h>

#include "warpline/capture/capture_source.h"
#include "warpline/capture/packet_times.h"
#include "warpline/datapath/queue_path.h"

namespace warpline::datapath {

/// PacketTrace tells the way of one packet of a burst, if the path's trace wants it. Owner: the lcore that transmits.
class PacketTrace {
 public:
  /// Picks a packet of those that are about to be sent or dropped, another one each time.
  void begin(QueuePath& path, rte_mbuf* const* mbufs, std::uint16_t count);
  /// Tells what became of it, and when.
  void end(QueuePath& path, const capture::PacketTimes& times);

 private:
  capture::CaptureSource* source_ = nullptr;
  capture::CapturedPacket* packet_ = nullptr;  ///< null: none is followed
  std::uint32_t turn_ = 0;
};

}  // namespace warpline::datapath
