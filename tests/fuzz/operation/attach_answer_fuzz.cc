// SPDX-License-Identifier: Apache-2.0
// Any bytes as what a process answers to `top`, a line each: a screen that has as many lines and columns as it may.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "attach/top_metrics.h"
#include "attach/top_screen.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace warpline::attach;
  if (size < 3) return 0;
  const std::size_t width = data[0], height = data[1];
  std::string_view text(reinterpret_cast<const char*>(data) + 3, size - 3);
  TopTable table;
  Sample sample{.time_s = 1};
  for (std::size_t i = data[2]; !text.empty(); ++i) {
    const std::size_t end = text.find('\n');
    const TopMetric& metric = kTopMetrics[i % std::size(kTopMetrics)];
    add_answer(sample, std::string(metric.name), answer_in(text.substr(0, end), "/warpline/metrics,x"));
    if (i % 5 == 0) table.add(sample);
    sample.time_s += 0.5;
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
  table.add(sample);
  for (const SortBy sort : {SortBy::name, SortBy::rate, SortBy::total}) {
    const auto lines = draw({.process = "x", .every = "1 s", .sort = sort}, table.rows(sort), width, height);
    if (lines.size() > height) std::abort();
    for (const std::string& line : lines) {
      std::size_t columns = 0;
      for (const char c : line) {
        if (static_cast<unsigned char>(c) < 0x20) std::abort();
        columns += (static_cast<unsigned char>(c) & 0xc0) != 0x80 ? 1 : 0;
      }
      if (columns > width) std::abort();
    }
  }
  (void)table.to_json().dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return 0;
}
