// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "runtime/port.h"

namespace warpline {

/// Lets a GPU play the DMA engine of software NICs, for packets in its memory: it copies them between there and the
/// NIC's own memory, over PCIe. Goes when the ports that it was installed in are stopped, and before they are closed.
class NicCopies {
 public:
  /// `gpus`: one for all queues, or one for each.
  explicit NicCopies(std::vector<std::uint16_t> gpus);
  ~NicCopies();

  /// Before the port is started. Ports of hardware do their own DMA: nothing is done for them.
  [[nodiscard]] Result<void> install(const Port& port);

 private:
  class Lanes;
  std::unique_ptr<Lanes> lanes_;
};

}  // namespace warpline
