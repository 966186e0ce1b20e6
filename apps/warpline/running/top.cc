// SPDX-License-Identifier: Apache-2.0
// `warpline top`: what a running process does, as a table in a terminal.
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "attach/sample.h"
#include "attach/telemetry_client.h"
#include "attach/terminal.h"
#include "attach/top_screen.h"
#include "attach/top_table.h"
#include "commands.h"
#include "running/connect.h"
#include "warpline/base/output.h"
#include "warpline/runtime/stop.h"

namespace warpline {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

bool interrupted() { return runtime::StopOnSignal::requested().load(std::memory_order_relaxed); }

/// One run of `top`.
class TopRun {
 public:
  TopRun(const config::LoadedConfig& loaded, attach::TelemetryClient process)
      : name_(process.name()),
        interval_(std::chrono::nanoseconds(loaded.config.run.interval.value)),
        process_(std::move(process)) {}

  /// Prints the rows of one interval.
  Result<int> print_json() {
    WARPLINE_CHECK(sample());
    const double first_s = sampled_s_;
    const auto until = Clock::now() + interval_;
    while (Clock::now() < until) {
      poll(nullptr, 0, static_cast<int>(std::min(left(until), kLook).count()));
      if (interrupted()) return kInterrupted;
    }
    WARPLINE_CHECK(sample());
    nlohmann::ordered_json process = {{"name", name_}, {"pid", process_.pid()}};
    for (const char* const fact : {"command", "version"}) process[fact] = fact_of(fact);
    const nlohmann::ordered_json json = {{"schema_version", 1},
                                         {"command", "top"},
                                         {"process", process},
                                         {"interval_s", sampled_s_ - first_s},
                                         {"rows", table_.to_json()}};
    put_line(stdout, json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    return 0;
  }

  /// Shows the table until a key, a signal or the end of the process ends it.
  Result<int> show() {
    WARPLINE_CHECK(sample());
    Result<int> end = 0;
    {
      const attach::Terminal terminal;
      end = follow();
    }
    if (!end && process_.ended()) {
      put_line(stderr, fmt::format("warpline: {} has ended", name_));
      return 0;
    }
    return end;
  }

 private:
  static constexpr milliseconds kLook{200};  ///< how often the size of the terminal is looked at

  static milliseconds left(Clock::time_point until) {
    return std::max(milliseconds{1}, std::chrono::ceil<milliseconds>(until - Clock::now()));
  }

  [[nodiscard]] std::string fact_of(const std::string& fact) const {
    const auto found = build_.find(fact);
    return found == build_.end() ? std::string() : found->second;
  }

  Result<void> sample() {
    WARPLINE_TRY(const attach::Sample taken, attach::take_sample(process_));
    if (taken.metrics.empty()) return {};  // it is about to end
    build_ = taken.build;
    sampled_s_ = taken.time_s;
    table_.add(taken);
    return {};
  }

  Result<int> follow() {
    attach::TopHead head{.process = fmt::format("{} {}, pid {}", fact_of("command"), name_, process_.pid()),
                         .every = fmt::format("every {} s", std::chrono::duration<double>(interval_).count())};
    auto next = Clock::now() + interval_;
    while (!interrupted()) {
      const auto [width, height] = attach::Terminal::size();
      attach::Terminal::show(attach::draw(head, table_.rows(head.sort), width, height));
      const std::optional<char> key = attach::Terminal::key(std::min(left(next), kLook));
      if (key == 'q') return 0;
      if (key == 's') head.sort = static_cast<attach::SortBy>((static_cast<int>(head.sort) + 1) % 3);
      if (key == 'p') head.paused = !head.paused;
      if (Clock::now() < next) continue;
      next = Clock::now() + interval_;
      // A process that ends is noticed in a pause, too.
      if (!head.paused) WARPLINE_CHECK(sample());
      if (head.paused) WARPLINE_CHECK(process_.look());
    }
    return kInterrupted;
  }

  std::string name_;
  std::chrono::nanoseconds interval_;
  attach::TelemetryClient process_;
  attach::TopTable table_;
  std::map<std::string, std::string> build_;
  double sampled_s_ = 0;
};

}  // namespace

Result<int> run_top(const config::LoadedConfig& loaded) {
  const bool json = loaded.config.run.json;
  if (!json && !attach::Terminal::is_there()) {
    return usage_error("cannot draw a table", "stdin or stdout is no terminal", "add --json for one snapshot");
  }
  const runtime::StopOnSignal on_signal;
  WARPLINE_TRY(attach::TelemetryClient process, connect_to_process(loaded.config.attach));
  TopRun run(loaded, std::move(process));
  return json ? run.print_json() : run.show();
}

}  // namespace warpline
