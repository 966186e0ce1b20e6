// SPDX-License-Identifier: Apache-2.0
// The table of a benchmark as JSON and as Markdown.
#include <fmt/format.h>

#include <algorithm>

#include "bench/table.h"

namespace warpline::bench {
namespace {

using Json = nlohmann::ordered_json;

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Json summary(const std::vector<double>& values) {
  const auto [least, most] = std::ranges::minmax(values);
  return {{"median", median(values)}, {"min", least}, {"max", most}, {"samples", values}};
}

Json cell_json(const BenchCell& cell, const BenchSamples& samples) {
  Json json = {{"command", fmt::format("warpline {}", fmt::join(cell.timed, " "))}};
  if (samples.checked) json["verified_packets"] = *samples.checked;
  if (samples.failed()) json["failure"] = samples.failure;
  if (samples.mpps.empty()) return json;
  json["mpps"] = summary(samples.mpps);
  json["gbps_l2"] = summary(samples.gbps);
  json["loss"] = summary(samples.loss);
  if (!samples.p50_us.empty()) {
    json["p50_us"] = summary(samples.p50_us);
    json["p99_us"] = summary(samples.p99_us);
  }
  if (samples.gpu_memory) json["gpu_memory_bytes"] = *samples.gpu_memory;
  return json;
}

/// "116 Gbit/s, 227.3 Mpps [220.1, 231.0], 0 % lost, 4.1/8.9 us, 34 MB"
std::string cell_text(const BenchSamples& samples) {
  if (samples.mpps.empty()) return "failed";
  const auto [least, most] = std::ranges::minmax(samples.mpps);
  std::string text = fmt::format("{:.0f} Gbit/s, {:.1f} Mpps [{:.1f}, {:.1f}]", median(samples.gbps),
                                 median(samples.mpps), least, most);
  if (const double loss = median(samples.loss); loss != 0) text += fmt::format(", {:.2g} % lost", 100 * loss);
  if (!samples.p50_us.empty()) {
    text += fmt::format(", {:.1f}/{:.1f} us", median(samples.p50_us), median(samples.p99_us));
  }
  if (samples.gpu_memory) text += fmt::format(", {:.0f} MB", static_cast<double>(*samples.gpu_memory) / 1e6);
  return text;
}

}  // namespace

Json BenchTable::to_json() const {
  Json json = {{"name", plan.name}, {"title", plan.title}, {"pipelines", plan.pipelines}};
  json["rows"] = Json::array();
  for (std::size_t r = 0; r < plan.rows.size(); ++r) {
    const BenchRow& row = plan.rows[r];
    Json columns = Json::object(), published = Json::object();
    for (std::size_t c = 0; c < row.cells.size(); ++c)
      columns[row.cells[c].column] = cell_json(row.cells[c], samples[r][c]);
    for (std::size_t p = 0; p < plan.published.size(); ++p) {
      if (row.published[p]) published[plan.published[p]] = *row.published[p];
    }
    json["rows"].push_back(
        {{"size", row.size}, {"burst", row.burst}, {"columns", columns}, {"published_gbps", published}});
  }
  json["source"] = plan.source;
  json["notes"] = notes;
  return json;
}

std::string BenchTable::to_markdown() const {
  std::vector<std::string> head = {"frame", "burst"};
  head.insert(head.end(), plan.columns.begin(), plan.columns.end());
  head.insert(head.end(), plan.published.begin(), plan.published.end());
  std::string text = fmt::format(
      "{}, {} pipelines. Gbit/s of frames with FCS; median [least, most] of the rounds; "
      "p50/p99 from a batch closed to its work seen done; GPU memory.\n\n| {} |\n|",
      plan.title, plan.pipelines, fmt::join(head, " | "));
  for (std::size_t i = 0; i < head.size(); ++i) text += " --- |";
  text += "\n";
  for (std::size_t r = 0; r < plan.rows.size(); ++r) {
    const BenchRow& row = plan.rows[r];
    text += fmt::format("| {} B | {} |", row.size, row.burst);
    for (const BenchSamples& cell : samples[r]) text += fmt::format(" {} |", cell_text(cell));
    for (const auto& gbps : row.published) text += gbps ? fmt::format(" {:.0f} Gbit/s |", *gbps) : " |";
    text += "\n";
  }
  text += fmt::format("\nPublished: {}.\n", plan.source);
  for (const std::string& note : notes) text += fmt::format("- {}\n", note);
  for (std::size_t r = 0; r < plan.rows.size(); ++r) {
    for (std::size_t c = 0; c < samples[r].size(); ++c) {
      if (!samples[r][c].failed()) continue;
      text += fmt::format("- {} B, burst {}, {}: {}\n", plan.rows[r].size, plan.rows[r].burst,
                          plan.rows[r].cells[c].column, samples[r][c].failure);
    }
  }
  return text;
}

}  // namespace warpline::bench
