// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "config/config.h"
#include "frame/run_frame.h"
#include "warpline/base/result.h"
#include "warpline/base/statistics/turn_count.h"
#include "warpline/datapath/capture/capture_door.h"
#include "warpline/datapath/capture/path_capture.h"
#include "warpline/datapath/capture/path_taps.h"
#include "warpline/datapath/queue_path.h"
#include "warpline/forward/forward_ports.h"
#include "warpline/forward/forward_run.h"
#include "warpline/forward/forwarder.h"
#include "warpline/forward/loopback_traffic.h"
#include "warpline/forward/make_stages.h"
#include "warpline/report/report.h"
#include "warpline/traffic/traffic.h"
#include "warpline/traffic/traffic_group.h"

namespace warpline {

/// `PathsFrame` is the run of a command whose packets go from the queues of ports to others: captures of them, and the
/// ports' addresses. The control thread makes all calls.
class PathsFrame : protected RunFrame {
 protected:
  using RunFrame::RunFrame;
  ~PathsFrame() = default;

  /// Opens the capture that was asked for, if one was, and where others may attach, of `paths`, which are those of
  /// `captured` ports and polled by `threads`. They stay until finish_captures().
  [[nodiscard]] Result<void> open_captures(std::span<const port::Port> captured,
                                           std::span<const std::unique_ptr<datapath::QueuePath>> paths,
                                           std::vector<const TurnCount*> threads);
  /// A capture that is to begin, and end the one before, because the configuration was read again.
  struct NextCapture {
    bool changes = false;                                ///< false: there is nothing to do
    std::unique_ptr<capture::Capture> opened = nullptr;  ///< null: nothing is captured any more
  };
  /// Opens what `next` asks for. With an error nothing has changed.
  [[nodiscard]] Result<NextCapture> open_next_capture(const config::Config& next);
  /// Begins it, once the lcores have left the one before. Environment error: they do not.
  [[nodiscard]] Result<void> begin_next_capture(NextCapture next, const capture::CaptureSettings& settings);

  /// Ends all captures, once the lcores have ended. More than once does no more.
  void finish_captures();

  /// Does what RunFrame::tend() does, and what captures wait for.
  void tend();

  /// Announces the addresses of the configured `ports`, and has the workers of `paths` do so from then on.
  void announce_ports(const forward::ForwardPorts& ports, std::span<const std::unique_ptr<datapath::QueuePath>> paths);

  std::unique_ptr<datapath::PathTaps> taps_;        ///< null: nothing can be captured
  std::unique_ptr<datapath::PathCapture> capture_;  ///< null: nothing is captured
  std::unique_ptr<datapath::CaptureDoor> door_;     ///< null: nobody can attach
};

/// `ForwarderFrame` is the run of a command that forwards: a forward::ForwardRun, and what the program adds to it:
/// captures, reload and what is shown. A command that has members which the forwarder's stages use calls end() in its
/// destructor, so that these go last. The control thread makes all calls.
class ForwarderFrame : protected PathsFrame {
 protected:
  using PathsFrame::PathsFrame;
  ~ForwarderFrame() { end(); }

  /// Decides, and refuses, all that can be before DPDK starts. `makes_traffic` says that the program sends frames, and
  /// `change_far` may change what the far side of a loopback does; it may be null.
  [[nodiscard]] Result<void> plan_forwarding(bool makes_traffic,
                                             const std::function<void(forward::LoopbackSettings&)>& change_far);

  /// Starts DPDK, opens the ports.
  [[nodiscard]] Result<void> open();

  /// Waits for links, and makes the forwarder and the far side of a loopback. That is the last that can be refused,
  /// with one line, so announce() comes after it. With null for `make_stages` the settings say which stages there are.
  [[nodiscard]] Result<void> prepare(const forward::StageMaker& make_stages);

  /// Starts engines and lcores. `before` is the last to be done before these run; it may be null.
  [[nodiscard]] Result<void> launch_forwarding(const std::function<Result<void>()>& before = nullptr);

  /// What a command shows of its run while it lasts.
  struct Shown {
    std::function<RunTotals()> totals;     ///< as LiveHooks::sample
    std::function<Tally()> through;        ///< as LiveHooks::progress
    std::function<void()> look = nullptr;  ///< is called by each look of the control loop; may be null
  };
  /// Runs until all that the run is to receive is there, or it is interrupted, and until lcores and engines have ended;
  /// the captures then end with what these gave back last.
  [[nodiscard]] report::LiveResult supervise(const Shown& shown);

  /// Returns what the generator and checker of a loopback did at a rate, each worker with a queue pair of its own:
  /// whether the rate that was asked for was kept. Nothing without a loopback or a rate.
  [[nodiscard]] std::vector<traffic::QueueTotals> far_queues() const;

  /// Returns the GPUs of the run. `memory_bytes` is what the run took of their memory.
  [[nodiscard]] report::GpuTotals gpu_totals(std::uint64_t memory_bytes) const;

  /// Ends what was begun of a run, at any point of it. More than once does no more.
  void end();

  // After open().
  [[nodiscard]] const std::vector<port::Port>& ports() const { return run_->ports(); }
  [[nodiscard]] const forward::ForwardPorts& opened_ports() const { return run_->opened_ports(); }
  /// Those that are forwarded on: all, or the near one of a loopback.
  [[nodiscard]] std::span<const port::Port> near_ports() const {
    const std::span<const port::Port> all = ports();
    return config_.forward.loopback ? all.first(1) : all;
  }

  // After prepare().
  [[nodiscard]] const forward::Forwarder& forwarder() const { return std::as_const(*run_).forwarder(); }
  /// The generator and checker of a loopback; null without one.
  [[nodiscard]] const traffic::TrafficGroup* far() const { return run_->far() ? &run_->far()->group() : nullptr; }

  std::optional<traffic::TrafficPlan> traffic_;

 private:
  [[nodiscard]] Result<void> name_gpus();

  std::unique_ptr<forward::ForwardRun> run_;
};

}  // namespace warpline
