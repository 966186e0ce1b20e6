// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/datapath/queue_path.h"
#include "warpline/memory/port_pools.h"
#include "warpline/port/port.h"

namespace warpline::forward {

/// Whether a run on net_vnic's wire=static did to each frame what its workload is to do, at full rate.
///
/// **Where the ports leave payload alone**, so all but GPU memory: it costs the run one multiplication a packet in the
/// driver. Before the run each buffer gets a pair of MAC addresses of its own. To exchange them twice is to leave them
/// alone, so at the end they are exchanged in those buffers that were worked on an odd number of times. The driver has
/// the XOR of the marks (base/buffer_mark.h) of all buffers that it handed out, which is that of those received an odd
/// number of times; less those that the program set aside unworked, it must be the XOR of the marks of the buffers
/// found exchanged. One frame skipped, or worked on twice, at any rate and in a run of any length, makes them differ.
/// What goes unseen is a buffer that is skipped an even number of times; an engine's own count (Burst::unworked) has no
/// such gap, but it does not look at bytes.
///
/// **With a copy engine** each reception brings a frame's bytes anew, and the driver itself looks at the addresses of
/// each one that it has gathered to send: exact, frame by frame, of all that was sent.
///
/// Control thread, while no lcore and no engine runs: kernels have ended, so what they wrote is in memory.
class StaticWireProof {
 public:
  /// Takes `ports`, which are started, and the pools that they receive into; both must outlive this object.
  StaticWireProof(std::span<const port::Port> ports, std::span<const memory::PortPools> pools);

  /// In frames. Of buffers, `bad` is how many hold neither their addresses nor the same exchanged, and one more if
  /// others are not as they should be. On other ports nothing is checked.
  struct Outcome {
    std::uint64_t checked = 0;
    std::uint64_t bad = 0;
  };
  /// After the run. `swaps`: the workload exchanges addresses; all others must leave them alone.
  [[nodiscard]] Outcome outcome(bool swaps, std::span<const std::unique_ptr<datapath::QueuePath>> paths) const;
  /// The buffers are what is looked at: after an engine failed with some in hand they prove nothing.
  [[nodiscard]] bool by_buffers() const { return !pools_.empty(); }

 private:
  [[nodiscard]] std::uint64_t sum(const char* counter) const;
  [[nodiscard]] Outcome of_buffers(bool swaps, std::span<const std::unique_ptr<datapath::QueuePath>> paths) const;

  std::span<const port::Port> ports_;
  std::vector<rte_mempool*> pools_;  ///< where frames begin, each once; none where ports write payload
};

}  // namespace warpline::forward
