// SPDX-License-Identifier: Apache-2.0
#include "exporter/telemetry_commands.h"

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <rte_telemetry.h>

#include "exporter/telemetry_answers.h"

namespace warpline::exporter {
namespace {

constexpr std::chrono::seconds kPatience{1};
constexpr std::chrono::seconds kPatienceWithFiles{60};  ///< large ones are read, and tables made of them

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

int answer_metrics(const char* /*command*/, const char* parameters, rte_tel_data* answer) {
  const auto snapshot = snapshots().ask(kPatience);
  return snapshot ? say_metrics(*snapshot, parameters == nullptr ? "" : parameters, answer) : -EAGAIN;
}

int answer_totals(const char* /*command*/, const char* /*parameters*/, rte_tel_data* answer) {
  const auto snapshot = snapshots().ask(kPatience);
  return snapshot ? say_totals(*snapshot, answer) : -EAGAIN;
}

int answer_drops(const char* /*command*/, const char* /*parameters*/, rte_tel_data* answer) {
  const auto snapshot = snapshots().ask(kPatience);
  return snapshot ? say_drops(*snapshot, answer) : -EAGAIN;
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
