// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "warpline/base/result.h"

namespace warpline::transport {

/// Wakes one thread that sleeps in poll, epoll or the like, by an eventfd. A call that finds that thread awake costs a
/// few instructions; one that finds it asleep costs a system call.
///
/// The thread that sleeps looks for work, and if there was none: begin_sleep(); if that says so it sleeps until
/// descriptor() is readable, or until what else it waits for; then end_sleep(), and it looks for work again. Work that
/// was there before wake() is seen then, or the sleep does not begin.
class WakeUp {
 public:
  /// Environment error: the process has no descriptor left.
  [[nodiscard]] static Result<std::unique_ptr<WakeUp>> make();
  ~WakeUp();
  WakeUp(const WakeUp&) = delete;
  WakeUp& operator=(const WakeUp&) = delete;

  /// Ends the sleep, or keeps the next one from beginning. Any thread, and a signal's handler.
  void wake();

  /// False if it was woken since the last sleep ended: look once more. By the thread that sleeps, as end_sleep().
  [[nodiscard]] bool begin_sleep();
  /// The thread looks again: wakes need not end a sleep until the next one begins.
  void end_sleep();
  /// Readable when the sleep is to end. The object's; nobody else reads or writes it.
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  enum State : std::uint32_t { awake, woken, asleep };

  explicit WakeUp(int descriptor) : descriptor_(descriptor) {}

  int descriptor_;
  std::uint64_t unread_ = 0;  ///< writes to the eventfd that end_sleep() has not read, done or about to be
  std::atomic<std::uint32_t> state_{awake};
};

}  // namespace warpline::transport
