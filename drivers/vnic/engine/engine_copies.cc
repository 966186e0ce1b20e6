// SPDX-License-Identifier: Apache-2.0
// What both directions need of a copy engine.

#include <new>
#include <string>

#include "vnic/common/log.h"
#include "vnic/engine/engine_state.h"
#include "vnic/engine/hardware.h"

namespace warpline::vnic {

int Engine::set_copy_engine(const rte_net_vnic_copy_engine* engine) {
  copies_ = engine != nullptr;
  copy_engine_ = copies_ ? *engine : rte_net_vnic_copy_engine{};
  fixed_ = hardware_.args.wire == WireKind::fixed && !copies_;
  return prepare_copies();
}

int Engine::prepare_copies() {
  const bool supplies = hardware_.args.wire == WireKind::fixed;
  supplied_ = {};
  try {
    for (std::uint16_t i = 0; i < hardware_.args.most_queues(); ++i) {
      rx_[i]->copies.reset();
      tx_[i]->copies.reset();
      if (copies_ && i < hardware_.tx_queues) tx_[i]->copies = std::make_unique<TxCopies>(hardware_.args.buffer);
      if (!copies_ || i >= hardware_.rx_queues) continue;
      rx_[i]->copies = std::make_unique<RxCopies>();
      if (!supplies) continue;
      if (const int error = fill_supply(*rx_[i]->copies); error != 0) return error;
    }
  } catch (const std::bad_alloc&) {
    log_error("%s: no memory for the copies of %u and %u queues", hardware_.name.c_str(), hardware_.rx_queues,
              hardware_.tx_queues);
    return -ENOMEM;
  }
  return 0;
}

int Engine::fill_supply(RxCopies& copies) {
  Devargs args = hardware_.args;
  args.packets_per_s = 0;
  int status = 0;
  std::string problem;
  const std::unique_ptr<Source> source = Source::open(args, status, problem);
  if (source == nullptr) {
    log_error("%s: %s", hardware_.name.c_str(), problem.c_str());
    return status;
  }
  constexpr std::uint32_t kAlignment = TxCopies::kAlignment;
  copies.stride = (args.size + kAlignment - 1) / kAlignment * kAlignment;
  copies.supplied = args.buffer / copies.stride;
  copies.supply = PayloadMemory(std::size_t{copies.supplied} * copies.stride);
  copies.next = 0;
  Source::Frame frame;
  for (std::uint32_t i = 0; i < copies.supplied && source->next(0, frame); ++i) {
    std::memcpy(copies.supply.data() + std::size_t{i} * copies.stride, frame.bytes, frame.length);
    supplied_.add(frame.bytes, frame.length);
  }
  return 0;
}

void Engine::list_payload(const std::function<void(std::span<std::uint8_t>)>& found) const {
  for (std::uint16_t i = 0; i < hardware_.rx_queues; ++i) {
    if (hardware_.args.wire != WireKind::fixed) {
      found(hardware_.ingress.buffer(i).memory());
    } else if (rx_[i]->copies != nullptr) {
      found(rx_[i]->copies->supply.bytes());
    }
  }
  for (std::uint16_t i = 0; i < hardware_.tx_queues; ++i) {
    if (tx_[i]->copies != nullptr) found(tx_[i]->copies->memory.bytes());
  }
}

}  // namespace warpline::vnic
