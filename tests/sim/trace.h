// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <utility>

namespace warpline::sim {

/// What happened when, one line each, on stdout; or nothing.
class Trace {
 public:
  explicit Trace(bool on) : on_(on) {}

  template <typename... Args>
  void operator()(std::int64_t now, fmt::format_string<Args...> text, Args&&... args) const {
    if (!on_) return;
    fmt::print("{:>14.3f} us  ", static_cast<double>(now) / 1e3);
    fmt::print(text, std::forward<Args>(args)...);
    std::fputc('\n', stdout);
  }

 private:
  bool on_;
};

}  // namespace warpline::sim
