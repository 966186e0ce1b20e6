// SPDX-License-Identifier: Apache-2.0
#include "runtime/stop.h"

namespace warpline {
namespace {

std::atomic<bool> stop_requested{false};
std::atomic<int> stop_signal{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free,
              "written by a signal handler");

void request_stop(int signal) {
  stop_signal.store(signal, std::memory_order_relaxed);
  stop_requested.store(true, std::memory_order_relaxed);
}

}  // namespace

StopOnSignal::StopOnSignal() {
  stop_signal = 0;
  stop_requested = false;
  struct sigaction action{};
  action.sa_handler = request_stop;
  sigemptyset(&action.sa_mask);
  // SA_RESETHAND: the kernel takes the handler out at its first run, so the second signal ends the process.
  // No SA_RESTART: the control thread's sleep ends at once.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, &interrupt_);
  sigaction(SIGTERM, &action, &terminate_);
}

StopOnSignal::~StopOnSignal() {
  sigaction(SIGINT, &interrupt_, nullptr);
  sigaction(SIGTERM, &terminate_, nullptr);
}

const std::atomic<bool>& StopOnSignal::requested() { return stop_requested; }

int StopOnSignal::signal() { return stop_signal.load(std::memory_order_relaxed); }

}  // namespace warpline
