// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "warpline/base/result.h"
#include "warpline/port/port.h"

namespace warpline::forward {

/// Lets a GPU play the DMA engine of software NICs, for packets in its memory: it copies them between there and the
/// NIC's own memory, over PCIe. Goes when the ports that it was installed in are stopped, and before they are closed.
class NicCopies {
 public:
  /// `gpus`: queues use them in turn.
  explicit NicCopies(std::span<const std::uint16_t> gpus);
  ~NicCopies();

  /// Prepares lanes for all queues of the port, before it is started; it can be started once. Ports of hardware do
  /// their own DMA: nothing is done for them.
  [[nodiscard]] Result<void> install(const port::Port& port);
  /// Begins to copy, when all else that is to run on the GPUs is prepared.
  [[nodiscard]] Result<void> start();
  /// Before the ports are stopped: what waits for lanes that were not started is lost, or the ports would wait for it.
  void stop();

 private:
  class Lanes;
  std::unique_ptr<Lanes> lanes_;
};

}  // namespace warpline::forward
