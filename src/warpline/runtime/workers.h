// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/runtime/lcore_plan.h"

namespace warpline::runtime {

/// Runs functions on the plan's lcores. Used by the control thread. The functions must end by themselves (a stop flag);
/// the destructor waits for them.
class Workers {
 public:
  /// Workers for the lcores of `plan`, which outlives them; nothing is launched yet.
  explicit Workers(const LcorePlan& plan) : plan_(plan), bodies_(plan.workers.size()) {}
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers() { wait(); }

  /// Runs `body`, which must not throw, on the lcore of `plan.workers[worker]`.
  [[nodiscard]] Result<void> launch(std::size_t worker, std::function<void()> body);
  /// True while any launched function runs.
  [[nodiscard]] bool running() const;
  /// Returns when all have ended; what they wrote may be read then.
  void wait();

 private:
  struct Body {
    std::function<void()> run;
    int cpu = -1;
    /// Released by the worker when `run` has returned, acquired by wait(): what the worker wrote is seen then.
    std::atomic<bool> ended{true};
  };
  static int enter(void* body);

  const LcorePlan& plan_;
  std::vector<Body> bodies_;
};

}  // namespace warpline::runtime
