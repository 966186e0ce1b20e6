// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace warpline::rpc {

/// While it lives, this thread is in a loop that may call back; loops of other hosts may be around it.
class InLoop {
 public:
  explicit InLoop(const void* loop) : loop_(loop), around_(innermost) { innermost = this; }
  ~InLoop() { innermost = around_; }
  InLoop(const InLoop&) = delete;
  InLoop& operator=(const InLoop&) = delete;

  [[nodiscard]] static bool of(const void* loop) {
    const InLoop* at = innermost;
    while (at != nullptr && at->loop_ != loop) at = at->around_;
    return at != nullptr;
  }

 private:
  static inline thread_local const InLoop* innermost = nullptr;
  const void* loop_;
  const InLoop* around_;
};

}  // namespace warpline::rpc
