// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

namespace warpline::machine {

/// While it lives, the calling thread is scheduled as any other, even where it is a real-time thread (SCHED_FIFO,
/// SCHED_RR): for calls of DPDK that start threads and wait for them by sleeping a microsecond at a time, which on one
/// core may keep those threads of equal priority from running for half a minute. Afterwards the thread has its policy
/// again, and those that it started meanwhile have the same, as if they had inherited it. Set-up only.
class OrdinaryScheduling {
 public:
  OrdinaryScheduling();
  OrdinaryScheduling(const OrdinaryScheduling&) = delete;
  OrdinaryScheduling& operator=(const OrdinaryScheduling&) = delete;
  ~OrdinaryScheduling();

 private:
  int policy_;  ///< of the thread before, with SCHED_RESET_ON_FORK if that was set
  sched_param parameter_{};
  bool lowered_ = false;
};

}  // namespace warpline::machine
