// SPDX-License-Identifier: Apache-2.0
#include "warpline/runtime/setup_step.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <limits>
#include <mutex>
#include <utility>

#include "warpline/runtime/dpdk_log.h"

namespace warpline::runtime {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

constexpr int kInterrupted = 130;
constexpr std::int64_t kNever = 0;

std::mutex mutex;                ///< guards what follows and the steps
SetupStep* innermost = nullptr;  ///< of the steps under way
StepWatch* watch = nullptr;

/// When an interrupt came, in nanoseconds of the steady clock; or kNever.
std::atomic<std::int64_t> interrupted_at{kNever};
/// Wakes the watch. -1: there is none.
std::atomic<int> timer{-1};
static_assert(std::atomic<std::int64_t>::is_always_lock_free && std::atomic<int>::is_always_lock_free,
              "used by a signal handler");

/// Async-signal-safe: no more than a system call. A time that has passed wakes the watch at once; kNever does not.
void arm(nanoseconds when) {
  itimerspec due{};
  due.it_value.tv_sec = static_cast<time_t>(when.count() / 1'000'000'000);
  due.it_value.tv_nsec = static_cast<long>(when.count() % 1'000'000'000);
  timerfd_settime(timer.load(std::memory_order_relaxed), TFD_TIMER_ABSTIME, &due, nullptr);
}

void say(const std::string& line) { static_cast<void>(!write(stderr_descriptor(), line.data(), line.size())); }

/// Returns the memory that the process has, hugepages included, in MiB.
std::uint64_t memory_of_process() {
  std::ifstream status("/proc/self/status");
  std::uint64_t kibibytes = 0;
  for (std::string key; status >> key; status.ignore(std::numeric_limits<std::streamsize>::max(), '\n')) {
    std::uint64_t value = 0;
    if ((key == "VmRSS:" || key == "HugetlbPages:") && status >> value) kibibytes += value;
  }
  return kibibytes / 1024;
}

/// Above all threads that have the creator's priority. Left as it is where the system does not allow that.
void rise_above_others() {
  sched_param parameter{};
  const int policy = sched_getscheduler(0);
  if ((policy != SCHED_FIFO && policy != SCHED_RR) || sched_getparam(0, &parameter) != 0) return;
  parameter.sched_priority = std::min(parameter.sched_priority + 1, sched_get_priority_max(policy));
  sched_setscheduler(0, policy, &parameter);
}

}  // namespace

SetupStep::SetupStep(std::string what, Of of) : SetupStep(std::move(what), of, 0, "", std::nullopt) {}

SetupStep::SetupStep(std::string what, std::uint64_t parts, std::string_view unit)
    : SetupStep(std::move(what), Of::set_up, parts, unit, std::nullopt) {}

SetupStep::SetupStep(std::string what, Bytes memory)
    : SetupStep(std::move(what), Of::set_up, memory.value / kMebibyte, "MiB", memory_of_process()) {}

SetupStep::SetupStep(std::string what, Of of, std::uint64_t parts, std::string_view unit,
                     std::optional<std::uint64_t> memory)
    : what_(std::move(what)), of_(of), since_(Clock::now()), parts_(parts), unit_(unit), memory_before_(memory) {
  const std::lock_guard lock(mutex);
  outer_ = std::exchange(innermost, this);
  if (outer_ != nullptr && outer_->of_ == Of::running) of_ = Of::running;
  if (watch != nullptr) watch->look();
}

SetupStep::~SetupStep() {
  const std::lock_guard lock(mutex);
  if (output_) output_->clear();
  innermost = outer_;
  if (outer_ != nullptr) outer_->since_ = Clock::now();
  if (watch != nullptr) watch->look();
}

std::string SetupStep::progress(nanoseconds elapsed) const {
  const std::string what = "warpline: " + what_;
  if (parts_ == 0)
    return fmt::format("{}: {} s so far", what, std::chrono::duration_cast<std::chrono::seconds>(elapsed).count());
  std::uint64_t done = done_.load(std::memory_order_relaxed);
  if (memory_before_) done = std::max(memory_of_process(), *memory_before_) - *memory_before_;
  return progress_line(what, done, parts_, elapsed, unit_);
}

StepWatch::StepWatch(const Limits& limits) : limits_(limits) {
  interrupted_at.store(kNever, std::memory_order_relaxed);
  timer.store(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC), std::memory_order_relaxed);
  const std::lock_guard lock(mutex);
  watch = this;
  thread_ = std::thread([this] { run(); });
}

StepWatch::~StepWatch() {
  {
    const std::lock_guard lock(mutex);
    watch = nullptr;
    ending_ = true;
    arm(nanoseconds(1));
  }
  thread_.join();
  close(timer.exchange(-1, std::memory_order_relaxed));
}

void StepWatch::interrupt() {
  interrupted_at.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
  arm(nanoseconds(1));
}

void StepWatch::run() {
  rise_above_others();
  for (;;) {
    std::uint64_t expirations = 0;
    static_cast<void>(!read(timer.load(std::memory_order_relaxed), &expirations, sizeof expirations));
    const std::lock_guard lock(mutex);
    if (ending_) return;
    look();
  }
}

nanoseconds StepWatch::tell_progress(SetupStep& step, nanoseconds now) const {
  const nanoseconds since = step.since_.time_since_epoch();
  const nanoseconds due = std::max(since + limits_.quiet_for, step.next_line_.time_since_epoch());
  if (now < due) return due;
  if (!step.output_) step.output_.emplace(stderr_descriptor());
  step.output_->show(step.progress(now - since));
  step.next_line_ = Clock::time_point(now + step.output_->interval());
  return step.next_line_.time_since_epoch();
}

void StepWatch::look() {
  SetupStep* const step = innermost;
  if (step == nullptr) return arm(nanoseconds(kNever));
  const std::int64_t interrupted = interrupted_at.load(std::memory_order_relaxed);
  const nanoseconds now = Clock::now().time_since_epoch();
  nanoseconds next = tell_progress(*step, now);
  if (!step->named_ && step->parts_ == 0) {
    const nanoseconds due = step->since_.time_since_epoch() + limits_.named_after;
    if (now >= due) {
      if (step->output_) step->output_->clear();
      say(
          fmt::format("warpline: still {} after {} s: the call does not return; end the program with Ctrl-C, twice if "
                      "once is not enough\n",
                      step->what_, std::chrono::duration_cast<std::chrono::seconds>(limits_.named_after).count()));
      step->named_ = true;
    } else {
      next = std::min(next, due);
    }
  }
  if (interrupted != kNever && step->of_ == SetupStep::Of::set_up) {
    const nanoseconds end = nanoseconds(interrupted) + limits_.given_up_after;
    if (now >= end) {
      if (step->output_) step->output_->clear();
      say(fmt::format("warpline: interrupted while {}: there is nothing to report yet\n", step->what_));
      _exit(kInterrupted);
    }
    next = std::min(next, end);
  }
  arm(next);
  // An interrupt that came meanwhile has armed the timer before.
  if (interrupted_at.load(std::memory_order_relaxed) != interrupted) arm(nanoseconds(1));
}

}  // namespace warpline::runtime
