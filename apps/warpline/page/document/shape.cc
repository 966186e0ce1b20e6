// SPDX-License-Identifier: Apache-2.0
#include "page/document/shape.h"

#include <algorithm>
#include <set>

#include "page/text/markup.h"
#include "page/text/names.h"

namespace warpline::page {
namespace {

constexpr std::size_t kLeadingScalars = 4;
/// Keys whose value names an object without the key beside it.
constexpr std::string_view kNames[] = {"name", "tool", "program", "factor", "value", "figure"};

const Json* number_member(const Json& object, std::string_view key) {
  const Json* found = member(object, key);
  return found != nullptr && found->is_number() ? found : nullptr;
}

/// Members that belong to the statistic or the samples beside it, and have no cell of their own.
bool is_samples(std::string_view key, const Json& value) {
  return is_number_array(value) && (key == "values" || key == "samples");
}

void collect_leaves(const Json& object, const std::string& prefix, std::vector<Leaf>& found) {
  for (const auto& [key, value] : object.items()) {
    const std::string path = prefix + key;
    if (is_samples(key, value) || is_object_array(value)) continue;
    if (value.is_object() && !as_statistic(value)) {
      collect_leaves(value, path + ".", found);
    } else {
      found.push_back({path, &value});
    }
  }
}

std::string label_part(const std::string& key, const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? words(key) : "";
  const std::string text = value.is_string() ? value.get<std::string>() : rounded(value);
  return is_among(key, kNames) ? text : words(key) + " " + text;
}

}  // namespace

const Json* member(const Json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

std::string string_member(const Json& object, std::string_view key) {
  const Json* found = member(object, key);
  return found != nullptr && found->is_string() ? found->get<std::string>() : "";
}

std::vector<double> numbers(const Json& array) {
  std::vector<double> values;
  values.reserve(array.size());
  for (const Json& value : array) values.push_back(value.get<double>());
  return values;
}

std::optional<Statistic> as_statistic(const Json& value) {
  Statistic statistic;
  statistic.median = number_member(value, "median");
  if (statistic.median == nullptr) return std::nullopt;
  statistic.least = number_member(value, "min");
  statistic.most = number_member(value, "max");
  const Json* interval = member(value, "ci95");
  if (interval != nullptr && is_number_array(*interval) && interval->size() == 2) {
    statistic.low = &(*interval)[0];
    statistic.high = &(*interval)[1];
    statistic.interval_name = "95 % interval";
  } else if (const Json* low = number_member(value, "low"), *high = number_member(value, "high"); low && high) {
    statistic.low = low;
    statistic.high = high;
    statistic.interval_name = "interval";
  } else if (statistic.least != nullptr && statistic.most != nullptr) {
    std::swap(statistic.low, statistic.least);
    std::swap(statistic.high, statistic.most);
    statistic.interval_name = "least and most";
  }
  for (const std::string_view key : {"values", "samples"}) {
    const Json* samples = member(value, key);
    if (samples == nullptr) continue;
    if (samples->is_number()) statistic.count = samples;
    if (is_number_array(*samples)) statistic.samples = numbers(*samples);
  }
  return statistic;
}

bool is_scalar(const Json& value) { return value.is_primitive(); }

bool is_number_array(const Json& value) {
  return value.is_array() && !value.empty() && std::ranges::all_of(value, [](const Json& v) { return v.is_number(); });
}

bool is_object_array(const Json& value) {
  return value.is_array() && !value.empty() && std::ranges::all_of(value, [](const Json& v) { return v.is_object(); });
}

bool is_statistic_map(const Json& value) {
  return value.is_object() && !value.empty() &&
         std::ranges::all_of(value, [](const Json& v) { return as_statistic(v).has_value(); });
}

bool is_record_map(const Json& value) {
  if (!value.is_object() || value.size() < 2) return false;
  std::set<std::string_view> first;
  for (const auto& [key, record] : value.items()) {
    if (!record.is_object() || record.empty() || as_statistic(record) || is_statistic_map(record)) return false;
    std::set<std::string_view> keys;
    for (const auto& [inner, ignored] : record.items()) keys.insert(inner);
    if (first.empty()) first = keys;
    std::size_t common = 0;
    for (const std::string_view inner : keys) common += first.contains(inner) ? 1 : 0;
    if (2 * common < std::max(first.size(), keys.size())) return false;
  }
  return true;
}

bool is_flat_record(const Json& value) {
  if (!value.is_object()) return false;
  return std::ranges::all_of(value, [](const Json& cell) {
    if (is_object_array(cell)) return false;
    if (!cell.is_object() || as_statistic(cell)) return true;
    return std::ranges::none_of(cell,
                                [](const Json& inner) { return inner.is_structured() && !is_number_array(inner); });
  });
}

std::vector<Leaf> leaves(const Json& object) {
  std::vector<Leaf> found;
  collect_leaves(object, "", found);
  return found;
}

std::vector<std::string> labels(const Json& array) {
  for (const std::string_view key : {"name", "figure"}) {
    std::vector<std::string> names;
    for (const Json& element : array) names.push_back(string_member(element, key));
    if (std::ranges::none_of(names, &std::string::empty)) return names;
  }
  std::vector<std::string> result(array.size());
  if (array.size() < 2 || !array.front().is_object()) return result;
  std::size_t keys = 0;
  for (const auto& [key, first] : array.front().items()) {
    const std::set<std::string> distinct(result.begin(), result.end());
    if (!is_scalar(first) || first.is_null() || distinct.size() == result.size() || keys == kLeadingScalars) break;
    std::vector<std::string> parts;
    for (const Json& element : array) {
      const Json* value = member(element, key);
      parts.push_back(value == nullptr || !is_scalar(*value) || value->is_null() || value->is_number_float()
                          ? ""
                          : label_part(key, *value));
    }
    if (std::ranges::all_of(parts, [&](const std::string& part) { return part == parts.front(); })) continue;
    ++keys;
    for (std::size_t i = 0; i < result.size(); ++i) {
      if (!parts[i].empty()) result[i] += (result[i].empty() ? "" : ", ") + parts[i];
    }
  }
  return result;
}

std::string without_common_parts(std::vector<std::string>& labels) {
  std::string common;
  if (labels.size() < 2) return common;
  while (true) {
    const std::size_t end = labels.front().find(", ");
    if (end == std::string::npos) return common;
    const std::string part = labels.front().substr(0, end + 2);
    const bool shared = std::ranges::all_of(
        labels, [&](const std::string& label) { return label.starts_with(part) && label.size() > part.size(); });
    if (!shared) return common;
    for (std::string& label : labels) label.erase(0, part.size());
    common += (common.empty() ? "" : ", ") + part.substr(0, end);
  }
}

}  // namespace warpline::page
