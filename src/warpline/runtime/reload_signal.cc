// SPDX-License-Identifier: Apache-2.0
#include "warpline/runtime/reload_signal.h"

#include <atomic>

namespace warpline::runtime {
namespace {

std::atomic<bool> requested{false};
static_assert(std::atomic<bool>::is_always_lock_free, "written by a signal handler");

void request(int /*signal*/) { requested.store(true, std::memory_order_relaxed); }

}  // namespace

ReloadOnSignal::ReloadOnSignal() {
  requested = false;
  struct sigaction action{};
  action.sa_handler = request;
  sigemptyset(&action.sa_mask);
  sigaction(SIGHUP, &action, &before_);
}

ReloadOnSignal::~ReloadOnSignal() { sigaction(SIGHUP, &before_, nullptr); }

bool ReloadOnSignal::take() { return requested.exchange(false, std::memory_order_relaxed); }

}  // namespace warpline::runtime
