// SPDX-License-Identifier: Apache-2.0
#include "warpline/transport/loop_descriptor.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace warpline::transport {
namespace {

constexpr std::int64_t kASecond = 1'000'000'000;
constexpr std::int64_t kLongestTimer = 10 * kASecond;

bool watch(int epoll, int operation, int descriptor, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = descriptor;
  return ::epoll_ctl(epoll, operation, descriptor, &event) == 0;
}

}  // namespace

Result<std::unique_ptr<LoopDescriptor>> LoopDescriptor::make(int transport, int wake) {
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  const int timer = ::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  std::unique_ptr<LoopDescriptor> made(new LoopDescriptor(epoll, timer, transport));
  if (epoll < 0 || timer < 0) return environment_error("epoll and timerfd", std::strerror(errno), "raise `ulimit -n`");
  for (const int descriptor : {transport, wake, timer}) {
    if (!watch(epoll, EPOLL_CTL_ADD, descriptor, EPOLLIN))
      return environment_error("epoll", std::strerror(errno), "see /proc/sys/fs/epoll/max_user_watches");
  }
  return made;
}

LoopDescriptor::~LoopDescriptor() {
  for (const int descriptor : {timer_, epoll_}) {
    if (descriptor >= 0) ::close(descriptor);
  }
}

void LoopDescriptor::arm(Nanos now, Nanos until, bool blocked) {
  if (blocked != blocked_)
    (void)watch(epoll_, EPOLL_CTL_MOD, transport_, blocked ? std::uint32_t{EPOLLIN | EPOLLOUT} : EPOLLIN);
  blocked_ = blocked;
  if (armed_ > now && armed_ <= until) return;
  const std::int64_t nanos = until <= now ? 1 : std::min(until.value - now.value, kLongestTimer);
  armed_ = Nanos{now.value + nanos};
  const itimerspec timer{{0, 0}, {nanos / kASecond, nanos % kASecond}};
  (void)::timerfd_settime(timer_, 0, &timer, nullptr);  // which takes the last expiration back, too
}

}  // namespace warpline::transport
