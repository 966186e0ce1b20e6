// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>

#include "script_run.h"

namespace warpline::stream_script {

/// A file descriptor that is closed at the end.
class Handle {
 public:
  explicit Handle(int fd = -1) : fd_(fd) {}
  Handle(Handle&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Handle();
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

/// The kernel's TCP behind a TUN device, in a network namespace of its own: the oracle. Its time is real; what it
/// sends may come earlier or later than a script says, but in that order.
class KernelSubject final : public Subject {
 public:
  /// Moves the calling thread into a new network namespace, which goes with the thread and the subject. Errors:
  /// environment, without the privileges that it takes.
  [[nodiscard]] static Result<std::unique_ptr<KernelSubject>> create(const Script& script);

  [[nodiscard]] bool is_exact() const override { return false; }
  [[nodiscard]] Audience audience() const override { return Audience::kernel; }
  [[nodiscard]] Nanos now() const override;
  void wait_until(Nanos time) override;
  void inject(FrameBytes frame) override;
  [[nodiscard]] std::optional<FrameBytes> receive(Nanos until) override;
  [[nodiscard]] std::string act(const Action& action) override;

 private:
  KernelSubject() = default;
  [[nodiscard]] Result<void> make_device(const Script& script);
  [[nodiscard]] Result<void> listen(const Script& script);
  /// Takes what the kernel has sent; waits for it up to then.
  bool take(Nanos until);
  [[nodiscard]] std::string accept(const Action& action);
  [[nodiscard]] std::string read(const Action& action, int fd);
  [[nodiscard]] std::string ended(const Action& action, int fd);
  [[nodiscard]] std::string readable(const Action& action, int fd);

  Handle tun_;
  Handle listener_;
  std::map<std::uint32_t, Handle> accepted_;     ///< by peer
  std::map<std::uint32_t, std::uint64_t> read_;  ///< bytes of the stream, by peer
  std::deque<FrameBytes> sent_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace warpline::stream_script
