// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <variant>

#include "warpline/message/cc_config.h"
#include "warpline/message/internal/cc/dctcp.h"
#include "warpline/message/internal/cc/no_control.h"
#include "warpline/message/internal/cc/sample.h"
#include "warpline/message/internal/cc/swift.h"
#include "warpline/message/internal/cc/timely.h"

namespace warpline::message {

/// The congestion controller of a session: a value without pointers, clock or allocation. For any sequence of calls
/// the window is finite and in (0, max_window_bytes], the gap in [0, kMaxPacingGap].
class CongestionControl {
 public:
  explicit CongestionControl(const CcConfig& config) : controller_(make(config)) {}

  CcOutput on_ack(const CcSample& sample) {
    return std::visit([&](auto& controller) { return controller.on_ack(sample); }, controller_);
  }
  /// Before packets are found lost: what restore() brings back.
  void remember() {
    std::visit([](auto& controller) { controller.remember(); }, controller_);
  }
  /// What was found lost since remember() was only late (RFC 3522).
  CcOutput restore() {
    return std::visit([](auto& controller) { return controller.restore(); }, controller_);
  }
  /// Nothing was sent for longer than the retransmission timeout (RFC 5681, section 4.1).
  CcOutput on_idle(double initial_window_bytes) {
    return std::visit([=](auto& controller) { return controller.on_idle(initial_window_bytes); }, controller_);
  }
  /// Once for each packet found lost, and once for each retransmission timeout (`timeout`).
  CcOutput on_loss(Nanos now, bool timeout) {
    return std::visit([&](auto& controller) { return controller.on_loss(now, timeout); }, controller_);
  }
  [[nodiscard]] CcOutput output() const {
    return std::visit([](const auto& controller) { return controller.output(); }, controller_);
  }

 private:
  using Controller = std::variant<Swift, Timely, Dctcp, NoControl>;
  static Controller make(const CcConfig& config) {
    switch (config.kind) {
      case CcKind::timely:
        return Timely(config);
      case CcKind::dctcp:
        return Dctcp(config);
      case CcKind::none:
        return NoControl(config);
      case CcKind::swift:
        break;
    }
    return Swift(config);
  }

  Controller controller_;
};

static_assert(sizeof(CongestionControl) <= 128, "one for each of many sessions");

}  // namespace warpline::message
