// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace warpline {

/// ProgressLines tell how far something is that takes long, and how long the rest will take if it goes on so: one line
/// each few seconds, and one at the end. One thread.
class ProgressLines {
 public:
  using Clock = std::chrono::steady_clock;
  using Tell = std::function<void(const std::string& line)>;

  static constexpr std::chrono::seconds kInterval{5};  ///< between two lines

  /// `what` is its name, `total` how many parts it has, of about the same length.
  ProgressLines(std::string what, std::uint64_t total, Tell tell, Clock::time_point now = Clock::now())
      : what_(std::move(what)), total_(total), tell_(std::move(tell)), begun_(now), told_(now) {}

  /// Another part is done.
  void step(Clock::time_point now = Clock::now());

 private:
  std::string what_;
  std::uint64_t total_;
  Tell tell_;
  std::uint64_t done_ = 0;
  Clock::time_point begun_;
  Clock::time_point told_;
};

/// Returns a line such as "memcpy: [######..............] 3 of 10, 1 min 10 s left".
[[nodiscard]] std::string progress_line(const std::string& what, std::uint64_t done, std::uint64_t total,
                                        std::chrono::duration<double> elapsed);

}  // namespace warpline
