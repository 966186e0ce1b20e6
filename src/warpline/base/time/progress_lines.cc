// SPDX-License-Identifier: Apache-2.0
#include "warpline/base/time/progress_lines.h"

#include <fmt/format.h>

#include <cmath>

namespace warpline {
namespace {

std::string duration_text(std::uint64_t seconds) {
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3600) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  return fmt::format("{} h {} min", seconds / 3600, seconds / 60 % 60);
}

}  // namespace

std::string progress_line(const std::string& what, std::uint64_t done, std::uint64_t total,
                          std::chrono::duration<double> elapsed) {
  constexpr std::uint64_t kWidth = 20;
  const std::uint64_t filled = total == 0 ? kWidth : kWidth * done / total;
  std::string line = fmt::format("{}: [{}{}] {} of {}", what, std::string(filled, '#'),
                                 std::string(kWidth - filled, '.'), done, total);
  if (done == 0 || done >= total) return line;
  const double left = elapsed.count() * static_cast<double>(total - done) / static_cast<double>(done);
  return line + fmt::format(", {} left", duration_text(static_cast<std::uint64_t>(std::ceil(left))));
}

void ProgressLines::step(Clock::time_point now) {
  ++done_;
  if (now - told_ < kInterval && done_ < total_) return;
  told_ = now;
  tell_(progress_line(what_, done_, total_, now - begun_));
}

}  // namespace warpline
