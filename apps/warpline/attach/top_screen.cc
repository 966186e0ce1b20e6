// SPDX-License-Identifier: Apache-2.0
#include "attach/top_screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace warpline::attach {
namespace {

constexpr std::size_t kBeforeBars = 67;  ///< columns of a row
constexpr std::size_t kAround = 3;       ///< lines that are not rows: head, titles, keys

/// The first `width` columns; each character of ours takes one.
std::string cut(const std::string& line, std::size_t width) {
  std::size_t columns = 0;
  for (std::size_t at = 0; at < line.size(); ++at) {
    const bool begins = (static_cast<unsigned char>(line[at]) & 0xc0) != 0x80;
    if (begins && columns++ == width) return line.substr(0, at);
  }
  return line;
}

/// A name as it can be shown, whatever the process says.
std::string shown(std::string text) {
  std::ranges::replace_if(text, [](char c) { return c < 0x20 || c > 0x7e; }, '?');
  return text;
}

std::string row_text(const TopRow& row, bool first, std::size_t bars) {
  const std::string bits = row.bits_per_s ? short_number(*row.bits_per_s) : "";
  return fmt::format("{:<7} {:<24.24} {:>8} {:>8} {:>15.0f}  {}", first ? name(row.kind) : "", shown(row.name),
                     short_number(row.per_s), bits, row.total, sparkline(row.history, bars));
}

}  // namespace

std::string sparkline(const std::vector<double>& values, std::size_t most) {
  constexpr int kSteps = 8;
  const std::size_t count = std::min(values.size(), most);
  const auto begin = values.end() - static_cast<std::ptrdiff_t>(count);
  const double top = count == 0 ? 0 : *std::max_element(begin, values.end());
  std::string bars;
  for (auto value = begin; value != values.end(); ++value) {
    const int step = top > 0 ? static_cast<int>(std::lround(*value / top * (kSteps - 1))) : 0;
    bars += "\xe2\x96";
    bars += static_cast<char>(0x81 + std::clamp(step, 0, kSteps - 1));
  }
  return bars;
}

std::string short_number(double value) {
  if (value < 1000) return fmt::format("{:.0f}", value);
  for (const char unit : {'k', 'M', 'G', 'T'}) {
    value /= 1000;
    if (value < 999.9995) return fmt::format("{:.3f}{}", value, unit);
  }
  return fmt::format("{:.2g}T", value);
}

std::vector<std::string> draw(const TopHead& head, const std::vector<TopRow>& rows, std::size_t width,
                              std::size_t height) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("warpline {}, {}{}", shown(head.process), head.every, head.paused ? "  PAUSED" : ""));
  lines.push_back(fmt::format("{:<7} {:<24} {:>8} {:>8} {:>15}", "", "", "per s", "bit/s", "total"));
  const std::size_t room = height > kAround ? height - kAround : 0;
  const bool all = rows.size() <= room;
  const std::size_t shown = all ? rows.size() : std::max<std::size_t>(room, 1) - 1;
  const std::size_t bars = width > kBeforeBars ? width - kBeforeBars : 0;
  for (std::size_t i = 0; i < shown; ++i) {
    lines.push_back(row_text(rows[i], i == 0 || rows[i].kind != rows[i - 1].kind, bars));
  }
  if (!all) lines.push_back(fmt::format("... and {} more rows", rows.size() - shown));
  lines.push_back(fmt::format("q quit   s sort (by {})   p {}", name(head.sort), head.paused ? "go on" : "pause"));
  if (lines.size() > height) lines.resize(height);
  for (std::string& line : lines) line = cut(line, width);
  return lines;
}

}  // namespace warpline::attach
