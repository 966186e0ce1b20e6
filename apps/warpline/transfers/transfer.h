// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "warpline/base/kinds.h"
#include "warpline/base/result.h"
#include "warpline/base/statistics/run_totals.h"
#include "warpline/base/units.h"
#include "warpline/runtime/lcore_plan.h"

namespace warpline::transfers {

/// `Transfer` says which streams go from ports of the software NIC to the ports that they are joined to.
struct Transfer {
  std::uint32_t pairs = 1;                  ///< of ports, each with a core that receives and one that sends
  EngineKind engine = EngineKind::inline_;  ///< what takes segments: the receiving core, or a lane on a GPU beside it
  int gpu = 0;                              ///< CUDA ordinal
  ProcessorKind ack = ProcessorKind::cpu;   ///< who writes acknowledgements; gpu: the engine
  ProcessorKind io = ProcessorKind::cpu;    ///< who takes packets; gpu: the engine, out of queues
  EngineKind send_engine = EngineKind::inline_;  ///< what puts payload into frames: the sending core, a thread, launch
  std::uint16_t mtu = 1500;                      ///< of all ports
  std::uint32_t connections = 1;                 ///< at once, of each pair
  std::uint64_t bytes = 0;                       ///< of each connection; 0: as many as go in `seconds`
  double seconds = 1;                  ///< from the start of both workers on, where `bytes` does not tell the end
  std::uint64_t chunk = 0;             ///< bytes of which all are acknowledged before the next are sent; 0: all bytes
  std::uint64_t ring_bytes = 4 << 20;  ///< of each connection at the receiver, and most bytes of it on their way
  bool place = true;                   ///< the receiver puts bytes in their place; else it acknowledges them alone
  bool verify = true;                  ///< the receiver compares every byte with what was sent: where they are placed
  std::uint64_t seed = 1;              ///< of the bytes
};

/// `TransferFigures` is what a transfer came to.
struct TransferFigures {
  std::uint64_t bytes = 0;                  ///< of payload that arrived, each counted once
  double receiving_s = 0;                   ///< from the first of them to the last, at the receiver
  double sending_s = 0;                     ///< from the first SYN to the last acknowledgement of bytes, at the sender
  LatencyTotals chunks;                     ///< ns from the offer of a chunk to its acknowledgement
  std::uint64_t segments = 0;               ///< that carried bytes, each counted once
  std::uint64_t retransmitted = 0;          ///< segments that were sent again
  std::uint64_t acknowledgements = 0;       ///< that the receiver sent
  std::uint64_t lane_acknowledgements = 0;  ///< of these, those that its lane wrote
};

/// Returns the two workers of each pair, one after the other: the first receives, the second sends.
[[nodiscard]] std::vector<runtime::WorkerRequest> transfer_workers(std::uint32_t pairs);
/// Returns the memory of DPDK that a transfer takes by any of these engines, sent by `send_engine`: for Eal::start.
/// Errors: environment, if there is no such GPU.
[[nodiscard]] Result<Bytes> transfer_memory(std::uint32_t pairs, std::span<const EngineKind> engines,
                                            EngineKind send_engine, int gpu);

/// Makes the ports, has the second worker of each pair of `lcores` send and the first one receive, and closes them. The
/// control thread calls it, after Eal::start; it returns early, with what was done, once `stop` is set. Bytes that lie
/// in a GPU's memory are compared there. Errors: verification, if a byte is wrong or missing or a buffer was lost;
/// peer, if a connection did not finish; and those of ports and GPUs.
[[nodiscard]] Result<TransferFigures> run_transfer(const runtime::LcorePlan& lcores, const Transfer& transfer,
                                                   const std::atomic<bool>& stop);

}  // namespace warpline::transfers
