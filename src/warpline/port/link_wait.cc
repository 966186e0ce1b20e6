// SPDX-License-Identifier: Apache-2.0
#include "warpline/port/link_wait.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <ctime>

#include "warpline/base/output.h"
#include "warpline/runtime/setup_step.h"

namespace warpline::port {
namespace {

constexpr int kPatienceSeconds = 9;
constexpr int kLooksASecond = 100;

std::vector<std::string> names_of_down(std::span<const Port> ports) {
  std::vector<std::string> down;
  for (const Port& port : ports) {
    if (!port.link().up) down.push_back(port.name());
  }
  return down;
}

}  // namespace

std::vector<std::string> wait_for_links(std::span<const Port> ports, const std::atomic<bool>& stop) {
  std::vector<std::string> down = names_of_down(ports);
  if (down.empty()) return down;
  const std::string names = fmt::format("{}", fmt::join(down, ", "));
  put_line(stderr, fmt::format("warpline: note: waiting up to {} s for the link of {}", kPatienceSeconds, names));
  runtime::SetupStep step("waiting for the link of " + names, kPatienceSeconds, "s");
  for (int look = 0; look < kPatienceSeconds * kLooksASecond && !down.empty(); ++look) {
    if (stop.load(std::memory_order_relaxed)) break;
    if (look != 0 && look % kLooksASecond == 0) step.advance();
    const timespec pause{.tv_sec = 0, .tv_nsec = 1'000'000'000 / kLooksASecond};
    nanosleep(&pause, nullptr);
    down = names_of_down(ports);
  }
  return down;
}

}  // namespace warpline::port
