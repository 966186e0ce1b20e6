// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "warpline/message/cc_config.h"
#include "warpline/message/internal/cc/limits.h"
#include "warpline/message/internal/cc/sample.h"

namespace warpline::message {

/// A constant window: what the peer's credits allow is the only limit.
class NoControl {
 public:
  explicit NoControl(const CcConfig& config) : window_(sane_max_window(config)) {}

  CcOutput on_ack(const CcSample&) { return output(); }
  CcOutput on_loss(Nanos, bool) { return output(); }
  void remember() {}
  CcOutput restore() { return output(); }
  CcOutput on_idle(double) { return output(); }
  [[nodiscard]] CcOutput output() const { return {window_, Nanos{0}}; }

 private:
  double window_;  ///< bytes
};

}  // namespace warpline::message
