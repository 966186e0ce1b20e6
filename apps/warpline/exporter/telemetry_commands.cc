// SPDX-License-Identifier: Apache-2.0
#include "exporter/telemetry_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include <rte_telemetry.h>
#include <rte_version.h>

namespace warpline::exporter {
namespace {

constexpr std::chrono::seconds kPatience{1};
constexpr std::chrono::seconds kPatienceWithFiles{60};  ///< large ones are read, and tables made of them
constexpr std::size_t kLongestName = 64;                ///< DPDK's limit of a dictionary's keys, less its own end

/// Where DPDK's threads wait for what the control thread makes: it is asked, and shares the last.
template <typename T>
struct Counterpart {
  std::mutex mutex;
  std::condition_variable news;
  std::atomic<bool> asked{false};
  bool open = false;
  std::uint64_t taken = 0;
  std::shared_ptr<const T> last;

  /// Returns what was made after the call; null if nobody makes it.
  std::shared_ptr<const T> ask(std::chrono::seconds patience) {
    std::unique_lock lock(mutex);
    const std::uint64_t before = taken;
    asked.store(true, std::memory_order_relaxed);
    news.wait_for(lock, patience, [&] { return taken != before || !open; });
    return taken != before && open ? last : nullptr;
  }

  /// Makes one if somebody asks.
  template <typename Make>
  void answer(const Make& make) {
    if (!asked.exchange(false, std::memory_order_relaxed)) return;
    auto made = std::make_shared<const T>(make());
    const std::lock_guard lock(mutex);
    last = std::move(made);
    ++taken;
    news.notify_all();
  }

  void begin() {
    const std::lock_guard lock(mutex);
    open = true;
  }

  /// Whoever waits gets nothing.
  void end() {
    const std::lock_guard lock(mutex);
    open = false;
    last.reset();
    news.notify_all();
  }
};

Counterpart<metrics::Snapshot>& snapshots() {
  static Counterpart<metrics::Snapshot> one;
  return one;
}

Counterpart<std::string>& reloads() {
  static Counterpart<std::string> one;
  return one;
}

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

int answer_metrics(const char* /*command*/, const char* parameters, rte_tel_data* answer) {
  const auto snapshot = snapshots().ask(kPatience);
  if (!snapshot) return -EAGAIN;
  const std::string_view name = parameters == nullptr ? "" : parameters;
  return name.empty() ? metric_names(*snapshot, answer) : metric_values(*snapshot, name, answer);
}

int answer_totals(const char* /*command*/, const char* /*parameters*/, rte_tel_data* answer) {
  const auto snapshot = snapshots().ask(kPatience);
  if (!snapshot) return -EAGAIN;
  rte_tel_data_start_dict(answer);
  for (const metrics::Family& family : snapshot->families()) {
    if (family.samples.size() != 1 || !family.samples.front().labels.empty() || family.name.size() >= kLongestName)
      continue;
    put(answer, family.name, family.samples.front().value);
  }
  return 0;
}

int answer_drops(const char* /*command*/, const char* /*parameters*/, rte_tel_data* answer) {
  const auto snapshot = snapshots().ask(kPatience);
  if (!snapshot) return -EAGAIN;
  rte_tel_data_start_dict(answer);
  const auto found = std::ranges::find(snapshot->families(), "warpline_dropped_packets", &metrics::Family::name);
  if (found == snapshot->families().end()) return 0;
  for (const metrics::Family::Sample& sample : found->samples) {
    if (sample.value != metrics::Value{std::uint64_t{0}}) put(answer, sample.labels.front().second, sample.value);
  }
  return 0;
}

int answer_reload(const char* /*command*/, const char* /*parameters*/, rte_tel_data* answer) {
  const auto said = reloads().ask(kPatienceWithFiles);
  if (!said) return -EAGAIN;
  return rte_tel_data_string(answer, said->c_str()) == 0 ? 0 : -E2BIG;
}

}  // namespace

Result<std::unique_ptr<TelemetryCommands>> TelemetryCommands::open(Take take, Reload reload) {
  constexpr struct {
    const char* name;
    telemetry_cb answer;
    const char* help;
  } kCommands[] = {
      {"/warpline/metrics", answer_metrics, "Names all metrics, or says the values of one. Parameters: its name"},
      {"/warpline/totals", answer_totals, "Says the metrics that have one value. Takes no parameters"},
      {"/warpline/drops", answer_drops, "Says packets dropped by reason. Takes no parameters"},
      {"/warpline/reload", answer_reload, "Reads the configuration and its files again. Takes no parameters"},
  };
  for (const auto& [name, answer, help] : kCommands) {
    const int problem = rte_telemetry_register_cmd(name, answer, help);
    if (problem != 0 && problem != -EEXIST) {
      return environment_error(fmt::format("cannot answer {}", name), "DPDK has no room for the command",
                               "leave --telemetry out");
    }
  }
  snapshots().begin();
  reloads().begin();
  return std::unique_ptr<TelemetryCommands>(new TelemetryCommands(std::move(take), std::move(reload)));
}

TelemetryCommands::~TelemetryCommands() {
  snapshots().end();
  reloads().end();
}

void TelemetryCommands::poll() {
  snapshots().answer(take_);
  reloads().answer(reload_);
}

}  // namespace warpline::exporter
