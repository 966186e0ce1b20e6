// SPDX-License-Identifier: Apache-2.0
#include "warpline/base/time/progress_lines.h"

#include <fmt/format.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cmath>

namespace warpline {
namespace {

std::string duration_text(std::uint64_t seconds) {
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3600) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  return fmt::format("{} h {} min", seconds / 3600, seconds / 60 % 60);
}

/// Returns the columns of a terminal; 0: `file` is none.
std::size_t columns_of(int file) {
  constexpr std::size_t kUsual = 80;
  if (isatty(file) == 0) return 0;
  winsize size{};
  return ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col != 0 ? size.ws_col : kUsual;
}

void write_once(int file, const std::string& text) { static_cast<void>(!write(file, text.data(), text.size())); }

}  // namespace

ProgressOutput::ProgressOutput(int file) : file_(file), columns_(columns_of(file)) {}

std::chrono::nanoseconds ProgressOutput::interval() const { return std::chrono::seconds(columns_ == 0 ? 5 : 1); }

void ProgressOutput::show(std::string line) {
  shown_ = true;
  on_terminal_ = columns_ != 0;
  if (on_terminal_ && line.size() >= columns_) line.resize(columns_ - 1);
  write_once(file_, on_terminal_ ? "\r" + line + "\x1b[K" : line + "\n");
}

void ProgressOutput::clear() {
  if (std::exchange(on_terminal_, false)) write_once(file_, "\r\x1b[K");
}

std::string progress_line(const std::string& what, std::uint64_t done, std::uint64_t total,
                          std::chrono::duration<double> elapsed, std::string_view unit) {
  constexpr std::uint64_t kWidth = 20;
  const std::uint64_t filled = total == 0 ? kWidth : kWidth * std::min(done, total) / total;
  std::string line = fmt::format("{}: {} of {}{}{}", what, done, total, unit.empty() ? "" : " ", unit);
  if (done != 0 && done < total) {
    const double left = elapsed.count() * static_cast<double>(total - done) / static_cast<double>(done);
    line += fmt::format(", {} left", duration_text(static_cast<std::uint64_t>(std::ceil(left))));
  }
  return line + fmt::format(" [{}{}]", std::string(filled, '#'), std::string(kWidth - filled, '.'));
}

void ProgressLines::step(Clock::time_point now) {
  ++done_;
  const bool last = done_ >= total_ && output_.shown();
  if (now - begun_ < kQuietProgress || (now - told_ < output_.interval() && !last)) return;
  told_ = now;
  output_.show(progress_line(what_, done_, total_, now - begun_));
}

}  // namespace warpline
