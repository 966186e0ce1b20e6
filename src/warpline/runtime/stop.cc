// SPDX-License-Identifier: Apache-2.0
#include "warpline/runtime/stop.h"

namespace warpline::runtime {
namespace {

std::atomic<bool> stop_requested{false};
std::atomic<int> stop_signal{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free,
              "written by a signal handler");

void request_stop(int signal) {
  int none = 0;
  if (!stop_signal.compare_exchange_strong(none, signal, std::memory_order_relaxed)) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);  // ends the process when the handler returns
    return;
  }
  stop_requested.store(true, std::memory_order_relaxed);
  StepWatch::interrupt();
}

}  // namespace

StopOnSignal::StopOnSignal(const StepWatch::Limits& limits) {
  stop_signal = 0;
  stop_requested = false;
  watch_.emplace(limits);  // before the signals are blocked: its thread does not inherit that
  struct sigaction action{};
  action.sa_handler = request_stop;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, &interrupt_);
  sigaction(SIGTERM, &action, &terminate_);
  sigset_t both;
  sigemptyset(&both);
  sigaddset(&both, SIGINT);
  sigaddset(&both, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &both, &mask_);
}

StopOnSignal::~StopOnSignal() {
  sigaction(SIGINT, &interrupt_, nullptr);
  sigaction(SIGTERM, &terminate_, nullptr);
  watch_.reset();
  pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
}

const std::atomic<bool>& StopOnSignal::requested() { return stop_requested; }

int StopOnSignal::signal() { return stop_signal.load(std::memory_order_relaxed); }

}  // namespace warpline::runtime
