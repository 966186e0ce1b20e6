// SPDX-License-Identifier: Apache-2.0
#include "copies/memcpy_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "warpline/base/time/progress_lines.h"

namespace warpline::copies {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kTitle = "copies between host and GPU memory, by their number and by their size";
constexpr const char* kSource =
    "Susoon/Research_Report, DPDK_Summary.md (2020): i7-6800K, synchronous cudaMemcpy; its benchmark as committed "
    "allocates the device's side by cudaHostAlloc, so it copied from host to host memory";

/// What the study had: milliseconds for 2 MiB in so many copies.
constexpr std::pair<std::size_t, double> kPublished[] = {{32'768, 53.08}, {1, 0.208}};

/// Small cases are run so often a round that a timing is no accident of one wake-up.
std::size_t runs_of(const CopyCase& copies) { return std::clamp<std::size_t>((4 << 20) / copies.bytes(), 1, 50); }

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::string column_of(const CopyCase& copies) {
  if (copies.kind == CopyKind::host_memcpy) return std::string(name(copies.kind));
  return fmt::format("{}, {}", name(copies.kind), name(copies.direction));
}

double gigabytes_per_s(const CopyCase& copies, double nanos) { return static_cast<double>(copies.bytes()) / nanos; }

Json cell_json(const CopySamples& samples) {
  if (samples.nanos.empty()) return {{"failure", samples.failure}};
  const auto [least, most] = std::ranges::minmax(samples.nanos);
  const double middle = median(samples.nanos);
  Json micros = Json::array();
  for (const double nanos : samples.nanos) micros.push_back(nanos / 1e3);
  Json json = {{"us", {{"median", middle / 1e3}, {"min", least / 1e3}, {"max", most / 1e3}, {"samples", micros}}},
               {"ns_per_copy", middle / static_cast<double>(samples.copies.count)},
               {"gb_per_s", gigabytes_per_s(samples.copies, middle)},
               {"verified", true}};
  if (!samples.failure.empty()) json["failure"] = samples.failure;
  return json;
}

/// "12.3 us [12.0, 13.1], 5.32 GB/s"
std::string cell_text(const CopySamples& samples) {
  if (samples.nanos.empty()) return samples.failure.empty() ? "" : "failed";
  const auto [least, most] = std::ranges::minmax(samples.nanos);
  const double middle = median(samples.nanos);
  return fmt::format("{:.4g} us [{:.4g}, {:.4g}], {:.3g} GB/s", middle / 1e3, least / 1e3, most / 1e3,
                     gigabytes_per_s(samples.copies, middle));
}

bool in_one_row(const CopySamples& one, const CopySamples& other) {
  return one.copies.size == other.copies.size && one.copies.count == other.copies.count;
}

/// Calls `add(first, last)` for the cases of each row.
template <typename Add>
void each_row(const std::vector<CopySamples>& all, Add add) {
  for (auto first = all.begin(); first != all.end();) {
    const auto last = std::find_if_not(first, all.end(), [&](const auto& other) { return in_one_row(*first, other); });
    add(first, last);
    first = last;
  }
}

Json rows_json(const std::vector<CopySamples>& all, bool published) {
  Json rows = Json::array();
  each_row(all, [&](auto first, auto last) {
    Json row = {{"size", first->copies.size}, {"count", first->copies.count}, {"columns", Json::object()}};
    for (const auto& [count, millis] : kPublished) {
      if (published && count == first->copies.count) row["published_ms"] = millis;
    }
    for (auto cell = first; cell != last; ++cell) row["columns"][column_of(cell->copies)] = cell_json(*cell);
    rows.push_back(std::move(row));
  });
  return rows;
}

std::string rows_text(const std::vector<CopySamples>& all, bool published) {
  std::vector<std::string> columns;
  for (const CopySamples& samples : all) {
    const std::string column = column_of(samples.copies);
    if (std::ranges::find(columns, column) == columns.end()) columns.push_back(column);
  }
  std::string text = fmt::format("| copies | bytes each | {} |{}\n| --- | --- |", fmt::join(columns, " | "),
                                 published ? " published |" : "");
  for (std::size_t i = 0; i < columns.size() + (published ? 1 : 0); ++i) text += " --- |";
  text += "\n";
  each_row(all, [&](auto first, auto last) {
    text += fmt::format("| {} | {} |", first->copies.count, first->copies.size);
    for (const std::string& column : columns) {
      const auto cell = std::find_if(first, last, [&](const auto& one) { return column_of(one.copies) == column; });
      text += fmt::format(" {} |", cell == last ? "" : cell_text(*cell));
    }
    if (published) {
      const auto known = std::ranges::find(kPublished, first->copies.count, &std::pair<std::size_t, double>::first);
      text += known == std::end(kPublished) ? " |" : fmt::format(" {:.4g} us |", known->second * 1e3);
    }
    text += "\n";
  });
  return text;
}

void time_once(CopySamples& samples, const TimeCopies& time) {
  if (!samples.failure.empty()) return;
  const auto nanos = time(samples.copies, runs_of(samples.copies));
  if (nanos) {
    samples.nanos.push_back(median(*nanos));
    return;
  }
  samples.failure = nanos.error().message();
  // A driver or a build without batches lacks one column; all else that fails is a failure of the run.
  const bool only_missing = samples.copies.kind == CopyKind::batch && nanos.error().kind == ErrorKind::environment;
  samples.code = only_missing ? 0 : static_cast<int>(nanos.error().kind);
}

}  // namespace

MemcpyTable run_memcpy_table(bool with_gpu, std::uint16_t rounds, std::uint64_t seed, const TimeCopies& time,
                             const std::atomic<bool>& stop) {
  MemcpyTable table;
  for (const CopyCase& copies : cases_by_count(with_gpu)) table.by_count.push_back({copies, {}, {}, 0});
  for (const CopyCase& copies : cases_by_size(with_gpu)) table.by_size.push_back({copies, {}, {}, 0});
  std::vector<CopySamples*> order;
  for (CopySamples& samples : table.by_count) order.push_back(&samples);
  for (CopySamples& samples : table.by_size) order.push_back(&samples);
  std::mt19937_64 random(seed);
  ProgressLines parts("memcpy", std::uint64_t{rounds} * order.size());
  while (table.rounds < rounds) {
    std::ranges::shuffle(order, random);
    for (CopySamples* samples : order) {
      if (stop.load(std::memory_order_relaxed)) return table;
      time_once(*samples, time);
      parts.step();
    }
    ++table.rounds;
  }
  return table;
}

Json MemcpyTable::to_json() const {
  return {{"name", "memcpy"},
          {"title", kTitle},
          {"rounds", rounds},
          {"source", kSource},
          {"by_count", rows_json(by_count, true)},
          {"by_size", rows_json(by_size, false)},
          {"notes", notes}};
}

std::string MemcpyTable::to_markdown() const {
  std::string text = fmt::format(
      "{}: from the first call to the last byte's arrival, median [least, most] of {} rounds.\nWhat arrived was "
      "compared "
      "after every timing.\n\n2 MiB in so many copies:\n\n{}\nOne copy:\n\n{}\nPublished: {}.\n",
      kTitle, rounds, rows_text(by_count, true), rows_text(by_size, false), kSource);
  for (const std::string& note : notes) text += fmt::format("- {}\n", note);
  for (const auto* all : {&by_count, &by_size}) {
    for (const CopySamples& samples : *all) {
      if (samples.failure.empty()) continue;
      text += fmt::format("- {} copies of {} bytes, {}: {}\n", samples.copies.count, samples.copies.size,
                          column_of(samples.copies), samples.failure);
    }
  }
  return text;
}

int MemcpyTable::exit_code() const {
  int code = 0;
  for (const auto* all : {&by_count, &by_size}) {
    for (const CopySamples& samples : *all) {
      if (samples.code == static_cast<int>(ErrorKind::verification)) return samples.code;
      if (code == 0) code = samples.code;
    }
  }
  return code;
}

}  // namespace warpline::copies
