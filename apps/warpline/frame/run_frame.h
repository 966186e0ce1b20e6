// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/config.h"
#include "config/load.h"
#include "exporter/exporter.h"
#include "frame/service_manager.h"
#include "sandbox/sandbox.h"
#include "warpline/base/result.h"
#include "warpline/memory/recycle_setup.h"
#include "warpline/metrics/snapshot.h"
#include "warpline/port/announce/announce.h"
#include "warpline/port/port.h"
#include "warpline/report/live.h"
#include "warpline/report/report.h"
#include "warpline/report/run_end.h"
#include "warpline/runtime/crash/crash_report.h"
#include "warpline/runtime/eal.h"
#include "warpline/runtime/lcore_plan.h"
#include "warpline/runtime/reload_signal.h"
#include "warpline/runtime/setup_step.h"
#include "warpline/runtime/stop.h"
#include "warpline/runtime/workers.h"

namespace warpline {

/// `RunFrame` is what the run of every command that drives ports consists of, in the order of the run: plan (place()),
/// start_eal(), open the ports, announce(), launch(), supervise, begin_report(). A command derives from it, has the
/// ports and what works on them as members of its own, and its `std::optional<runtime::Workers>` as the last of these:
/// members are destroyed in reverse, so lcores end before what they run, ports close before the EAL ends, and the
/// handler of signals goes last. The control thread makes all calls.
class RunFrame {
 public:
  RunFrame(const RunFrame&) = delete;
  RunFrame& operator=(const RunFrame&) = delete;

 protected:
  explicit RunFrame(const config::LoadedConfig& loaded) : loaded_(loaded), config_(loaded.config) {}
  ~RunFrame() = default;

  /// Places these workers on the processors of the machine, as far as the settings let them: `lcores_`.
  [[nodiscard]] Result<void> place(const std::vector<runtime::WorkerRequest>& workers);

  /// Starts DPDK: `eal_`. `memory` is what all pools and rings of the run will need.
  [[nodiscard]] Result<void> start_eal(const std::vector<std::string>& port_specs, Bytes memory);

  /// Has the links of these ports noted as down, which were awaited.
  void note_down_links(std::vector<std::string> names);

  /// Says on stderr what costs rate or latency, then what `recycling` could not do, if the command recycles, and which
  /// links are down: it waits for these, unless note_down_links() says that they were awaited.
  void announce(std::span<const port::Port> ports, const memory::Recycling* recycling = nullptr);

  /// Announces the addresses of a started port, before a worker has its first transmit queue, and has tend() announce
  /// and defend them from then on: the worker that has the queue is given what this returns.
  port::Announcer& announce_by(std::unique_ptr<port::Announcer> announcer);

  /// Starts `run` on the lcore of each worker of the plan, with the worker's index; the clock of the run starts, too.
  /// After an error the caller stops the workers that were launched.
  [[nodiscard]] Result<void> launch(std::optional<runtime::Workers>& workers,
                                    const std::function<void(std::size_t)>& run);

  /// Answers scrapers and DPDK's telemetry, and keeps a crash report, where that was asked for, from the next tend()
  /// on: `add` adds what the run has counted so far. The last of set-up that can be refused.
  [[nodiscard]] Result<void> answer_metrics(const std::function<void(metrics::Snapshot&)>& add);

  /// Says that set-up is over: gives up what the run does not need any more, unless it is to keep it, and tells the
  /// service manager. All threads are there that DPDK, drivers and CUDA have. launch() does it.
  [[nodiscard]] Result<void> end_set_up();

  /// Puts in force what of a configuration that was read again may change, reads again the files that the run has read,
  /// and says in one line what it did; says nothing if that is nothing. With an error nothing has changed.
  using TakeOver = std::function<Result<std::string>(const config::Config& next)>;
  /// Has `take_over` called by tend(), when SIGHUP or DPDK's telemetry asks for it.
  void reload_by(TakeOver take_over) { take_over_ = std::move(take_over); }

  /// Does what control loops do beside their own: once each look.
  void tend();

  /// Begins the clean-up, which is named if it takes long; the memory of pools is left to the end of DPDK. Destructors
  /// of commands begin with it.
  void begin_end();

  /// Returns the part of the report that every run has: what was asked, how long it took, its rate, ports, cores,
  /// notes.
  [[nodiscard]] report::RunReport begin_report(const report::LiveResult& live, std::span<const port::Port> ports) const;

  /// Returns the notes of the run so far: what costs rate or latency, and the links that were down.
  [[nodiscard]] std::vector<std::string> notes(std::span<const port::Port> ports) const;

  /// Returns a line for each worker: which lcore and processor it had.
  [[nodiscard]] std::vector<std::string> lcore_lines() const;

  /// Prints a report as report::print() does; in JSON, with what the process may still do. The run
  /// is over.
  template <typename Report>
  void print(const Report& report) {
    service_manager_.stopping();
    report::print(Confined<Report>{report, restrictions_}, config_.run);
  }

  /// Adds what came of recycling on `ports`. `report` has its totals.
  void add_recycling(report::RunReport& report, const memory::Recycling& recycling,
                     std::span<const port::Port> ports) const;

  runtime::StopOnSignal on_signal_;            ///< goes last: an interrupt cuts short neither set-up nor clean-up
  runtime::ReloadOnSignal on_hangup_;          ///< likewise: a late SIGHUP ends nothing
  config::LoadedConfig loaded_;                ///< in force: reload changes it
  config::Config config_;                      ///< of `loaded_`, and what the plan makes of it
  std::optional<runtime::SetupStep> leaving_;  ///< names a clean-up that hangs, that of the EAL too; set as it begins
  runtime::LcorePlan lcores_;
  std::vector<std::string> plan_notes_;  ///< settings that the plan could not use in full, one line each
  std::optional<runtime::Eal> eal_;
  double started_s_ = 0;  ///< by report::monotonic_seconds()

 private:
  /// A report, and what its process may do.
  template <typename Report>
  struct Confined {
    const Report& report;
    const sandbox::Restrictions& restrictions;
    [[nodiscard]] nlohmann::ordered_json to_json() const {
      nlohmann::ordered_json json = report.to_json();
      json["privileges"] = restrictions_json(restrictions);
      return json;
    }
    [[nodiscard]] std::string to_text() const { return report.to_text(); }
  };
  [[nodiscard]] static nlohmann::ordered_json restrictions_json(const sandbox::Restrictions& restrictions);

  /// Returns what recycling could not do, each one line. That it does what the ports let it goes without saying, unless
  /// somebody asked for it.
  [[nodiscard]] std::vector<std::string> recycling_notes(const memory::Recycling& recycling) const;

  /// Opens the file of the crash report, if there is to be one.
  [[nodiscard]] Result<void> keep_crash_report(const metrics::Labels& build);

  /// Reads the configuration again and takes it over as far as the run can. Returns, and logs, what came of it, a line
  /// each; "refused: " and the reason if nothing has changed.
  std::string reload();
  [[nodiscard]] Result<std::vector<std::string>> read_again();

  std::vector<std::unique_ptr<port::Announcer>> announcers_;
  TakeOver take_over_;                          ///< empty: the run has nothing that may change
  std::function<metrics::Snapshot()> counted_;  ///< what the run has counted so far; empty before answer_metrics()
  std::optional<exporter::Exporter> exporter_;
  std::unique_ptr<runtime::CrashReport> crash_report_;
  double counters_noted_s_ = 0;  ///< when crash_report_ was told of them last
  sandbox::Restrictions restrictions_;
  ServiceManager service_manager_;
  std::optional<std::vector<std::string>> down_links_;  ///< when the run began; unset before that was looked at
};

}  // namespace warpline
