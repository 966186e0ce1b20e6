// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "warpline/base/result.h"
#include "warpline/base/units.h"
#include "warpline/message/types.h"

namespace warpline::transport {

/// One descriptor for loops that sleep in poll, epoll or what is made of them: readable when a transport has something,
/// when somebody wakes, or when a time has come. An epoll inside with a timerfd. Owner: the transport's thread.
class LoopDescriptor {
 public:
  /// `transport` and `wake` are descriptors that outlive it. Environment error: the process has none left.
  [[nodiscard]] static Result<std::unique_ptr<LoopDescriptor>> make(int transport, int wake);
  ~LoopDescriptor();
  LoopDescriptor(const LoopDescriptor&) = delete;
  LoopDescriptor& operator=(const LoopDescriptor&) = delete;

  [[nodiscard]] int get() const { return epoll_; }
  /// Before each sleep: it is readable at `until` at the latest, and once the transport is writable if that is
  /// `blocked`. System calls are made only if something has changed; the time may come early.
  void arm(Nanos now, Nanos until, bool blocked);

 private:
  LoopDescriptor(int epoll, int timer, int transport) : epoll_(epoll), timer_(timer), transport_(transport) {}

  int epoll_;
  int timer_;
  int transport_;
  bool blocked_ = false;
  Nanos armed_ = message::kNever;
};

}  // namespace warpline::transport
