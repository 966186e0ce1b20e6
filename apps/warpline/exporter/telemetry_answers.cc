// SPDX-License-Identifier: Apache-2.0
#include "exporter/telemetry_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <rte_telemetry.h>
#include <rte_version.h>

namespace warpline::exporter {
namespace {

constexpr std::size_t kLongestName = 64;  ///< DPDK's limit of a dictionary's keys, less its own end

void put(rte_tel_data* dictionary, const std::string& key, std::uint64_t number) {
#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
  rte_tel_data_add_dict_uint(dictionary, key.c_str(), number);
#else
  rte_tel_data_add_dict_u64(dictionary, key.c_str(), number);
#endif
}

/// DPDK knows no fractions: they become text.
void put(rte_tel_data* dictionary, const std::string& key, const metrics::Value& value) {
  if (const auto* const number = std::get_if<std::uint64_t>(&value)) return put(dictionary, key, *number);
  rte_tel_data_add_dict_string(dictionary, key.c_str(), fmt::format("{}", std::get<double>(value)).c_str());
}

/// What the values of labels are as a key, which has no more than letters, digits, '_' and '/'.
std::string key_of(const metrics::Labels& labels) {
  std::string key;
  for (const auto& [name, value] : labels) key += (key.empty() ? "" : "/") + value;
  const auto fits = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '/'; };
  std::ranges::replace_if(key, [&](char c) { return !fits(c); }, '_');
  return key.substr(0, kLongestName);
}

int metric_names(const metrics::Snapshot& snapshot, rte_tel_data* answer) {
  rte_tel_data_start_array(answer, RTE_TEL_STRING_VAL);
  for (const metrics::Family& family : snapshot.families()) rte_tel_data_add_array_string(answer, family.name.c_str());
  return 0;
}

/// The values by those of their labels; of a family without labels, by "value".
int metric_values(const metrics::Snapshot& snapshot, std::string_view name, rte_tel_data* answer) {
  const auto found = std::ranges::find(snapshot.families(), name, &metrics::Family::name);
  if (found == snapshot.families().end()) return -ENOENT;
  rte_tel_data_start_dict(answer);
  for (const auto& [labels, value] : found->samples) {
    if (found->kind != metrics::FamilyKind::info) {
      put(answer, labels.empty() ? "value" : key_of(labels), value);
      continue;
    }
    for (const auto& [label, text] : labels) {
      rte_tel_data_add_dict_string(answer, std::string(label).c_str(), text.c_str());
    }
  }
  for (const auto& [labels, times] : found->measured) {
    const std::string prefix = labels.empty() ? "" : key_of(labels) + "/";
    for (const auto& [quantile, nanoseconds] : {std::pair{"p50_ns", times.p50},
                                                {"p90_ns", times.p90},
                                                {"p99_ns", times.p99},
                                                {"p999_ns", times.p999},
                                                {"max_ns", times.max},
                                                {"count", times.count}}) {
      put(answer, prefix + quantile, nanoseconds);
    }
  }
  return 0;
}

}  // namespace

int say_metrics(const metrics::Snapshot& snapshot, std::string_view name, rte_tel_data* answer) {
  return name.empty() ? metric_names(snapshot, answer) : metric_values(snapshot, name, answer);
}

int say_totals(const metrics::Snapshot& snapshot, rte_tel_data* answer) {
  rte_tel_data_start_dict(answer);
  for (const metrics::Family& family : snapshot.families()) {
    if (family.samples.size() != 1 || !family.samples.front().labels.empty() || family.name.size() >= kLongestName)
      continue;
    put(answer, family.name, family.samples.front().value);
  }
  return 0;
}

int say_drops(const metrics::Snapshot& snapshot, rte_tel_data* answer) {
  rte_tel_data_start_dict(answer);
  const auto found = std::ranges::find(snapshot.families(), "warpline_dropped_packets", &metrics::Family::name);
  if (found == snapshot.families().end()) return 0;
  for (const metrics::Family::Sample& sample : found->samples) {
    if (sample.value != metrics::Value{std::uint64_t{0}}) put(answer, sample.labels.front().second, sample.value);
  }
  return 0;
}

}  // namespace warpline::exporter
