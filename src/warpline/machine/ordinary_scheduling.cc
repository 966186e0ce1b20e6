// SPDX-License-Identifier: Apache-2.0
#include "warpline/machine/ordinary_scheduling.h"

#include <sys/types.h>

#include <charconv>
#include <filesystem>
#include <string>
#include <system_error>

#include "warpline/base/give_way.h"

namespace warpline::machine {

OrdinaryScheduling::OrdinaryScheduling() : policy_(sched_getscheduler(0)) {
  constexpr sched_param kNone{};
  if (!is_real_time() || sched_getparam(0, &parameter_) != 0) return;
  lowered_ = sched_setscheduler(0, SCHED_OTHER, &kNone) == 0;
}

OrdinaryScheduling::~OrdinaryScheduling() {
  if (!lowered_) return;
  if ((policy_ & SCHED_RESET_ON_FORK) == 0) {
    std::error_code error;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", error)) {
      const std::string name = task.path().filename();
      pid_t thread = 0;
      std::from_chars(name.data(), name.data() + name.size(), thread);
      if (sched_getscheduler(thread) == SCHED_OTHER) sched_setscheduler(thread, policy_, &parameter_);
    }
  }
  sched_setscheduler(0, policy_, &parameter_);
}

}  // namespace warpline::machine
