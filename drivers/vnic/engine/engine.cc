// SPDX-License-Identifier: Apache-2.0
#include "vnic/engine/engine.h"

#include <cerrno>
#include <mutex>
#include <new>
#include <string>

#include "vnic/common/log.h"
#include "vnic/engine/engine_state.h"
#include "vnic/engine/hardware.h"

namespace warpline::vnic {

Engine::Engine(Hardware& hardware) : hardware_(hardware), fixed_(hardware.args.wire == WireKind::fixed) {}

Engine::~Engine() { stop_thread(); }

int Engine::open() {
  static_cast<void>(device_nanos());
  try {
    if (hardware_.args.wire == WireKind::source) {
      int status = 0;
      std::string problem;
      source_ = Source::open(hardware_.args, status, problem);
      if (source_ == nullptr) {
        log_error("%s: %s", hardware_.name.c_str(), problem.c_str());
        return status;
      }
    }
    for (std::uint16_t i = 0; i < hardware_.args.most_queues(); ++i) {
      tx_[i] = std::make_unique_for_overwrite<TxState>();
      rx_[i] = std::make_unique_for_overwrite<RxState>();
    }
  } catch (const std::bad_alloc&) {
    log_error("%s: no memory for the engine of %u queues", hardware_.name.c_str(), hardware_.args.most_queues());
    return -ENOMEM;
  }
  return 0;
}

void Engine::make_frames(std::uint32_t most) {
  Egress& egress = hardware_.egress;
  const std::uint64_t now = device_nanos();
  const std::scoped_lock held(egress);
  Source::Frame frame;
  for (std::uint32_t i = 0; i < most && source_->next(now, frame); ++i) {
    egress.receive(frame.bytes, frame.length, frame.nanos);
  }
}

}  // namespace warpline::vnic
