// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "warpline/transport/wake_up.h"

namespace warpline::rpc {

/// While it lives, this thread is in a loop that may call back: the one that this wakes. Others may be around it.
class InLoop {
 public:
  explicit InLoop(const transport::WakeUp& loop) : loop_(&loop), around_(innermost) { innermost = this; }
  ~InLoop() { innermost = around_; }
  InLoop(const InLoop&) = delete;
  InLoop& operator=(const InLoop&) = delete;

  [[nodiscard]] static bool of(const transport::WakeUp& loop) {
    const InLoop* at = innermost;
    while (at != nullptr && at->loop_ != &loop) at = at->around_;
    return at != nullptr;
  }

 private:
  static inline thread_local const InLoop* innermost = nullptr;
  const transport::WakeUp* loop_;
  const InLoop* around_;
};

}  // namespace warpline::rpc
