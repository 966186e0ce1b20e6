// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "config/config.h"
#include "frame/run_frame.h"
#include "warpline/base/result.h"
#include "warpline/base/statistics/turn_count.h"
#include "warpline/datapath/capture/capture_door.h"
#include "warpline/datapath/capture/path_capture.h"
#include "warpline/datapath/capture/path_taps.h"
#include "warpline/datapath/layout.h"
#include "warpline/datapath/run_inputs.h"
#include "warpline/forward/forward_ports.h"
#include "warpline/forward/forwarder.h"
#include "warpline/forward/make_stages.h"
#include "warpline/report/report.h"
#include "warpline/runtime/workers.h"
#include "warpline/traffic/traffic_group.h"
#include "warpline/traffic/traffic_worker.h"

namespace warpline {

/// `PathsFrame` is the run of a command whose packets go from the queues of ports to others by a layout: what is
/// decided before DPDK starts, and the ports. The control thread makes all calls.
class PathsFrame : protected RunFrame {
 protected:
  using RunFrame::RunFrame;
  ~PathsFrame() = default;

  /// `LayOut` says who does what; see datapath::lay_out_forward().
  using LayOut = datapath::ForwardLayout(const datapath::DatapathSettings& settings, const std::vector<int>& nodes,
                                         std::size_t cpus);
  /// Looks at the ports and the machine, and places the workers that `lay_out` wants. `config_.run.packets` becomes the
  /// number after which the ports have nothing more to give, if that is less.
  [[nodiscard]] Result<void> plan_paths(LayOut& lay_out);

  /// Starts DPDK and opens the ports. `beside` is the memory that the run needs beside the packets.
  [[nodiscard]] Result<void> open_ports(const forward::FarTraffic& far_traffic, Bytes beside = {});

  [[nodiscard]] const std::vector<port::Port>& ports() const { return ports_->ports(); }

  datapath::RunInputs inputs_;
  datapath::ForwardLayout layout_;
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

  /// Announces the addresses of the configured ports, and has the workers of `paths` do so from then on.
  void announce_ports(std::span<const port::Port> ports, std::span<const std::unique_ptr<datapath::QueuePath>> paths);

  std::optional<forward::ForwardPorts> ports_;
  std::unique_ptr<datapath::PathTaps> taps_;        ///< null: nothing can be captured
  std::unique_ptr<datapath::PathCapture> capture_;  ///< null: nothing is captured
  std::unique_ptr<datapath::CaptureDoor> door_;     ///< null: nobody can attach
};

/// `ForwarderFrame` is the run of a command with a forwarder, and owns it and, of a loopback, the far side. A command
/// that has members which the forwarder's stages use calls end() in its destructor, so that these go first. The control
/// thread makes all calls.
class ForwarderFrame : protected PathsFrame {
 protected:
  using PathsFrame::PathsFrame;
  ~ForwarderFrame() { end(); }

  /// Decides, and refuses, all that can be before DPDK starts. `makes_traffic` says that the program sends frames.
  [[nodiscard]] Result<void> plan_forwarding(bool makes_traffic);

  [[nodiscard]] Result<void> name_gpus();

  /// Starts DPDK, opens the ports. `closed_loop`: the far side of a loopback waits for its frames to come back.
  [[nodiscard]] Result<void> open(bool closed_loop = true);

  /// Waits for links, and makes the forwarder and the far side of a loopback. That is the last that can be refused,
  /// with one line, so announce() comes after it. With null for `make_stages` the settings say which stages there are.
  /// `change_far` is called with what the far side will do (far_options()), and may change it.
  using FarOptions = traffic::TrafficGroup::Options;
  [[nodiscard]] Result<void> prepare(const forward::StageMaker& make_stages,
                                     const std::function<void(FarOptions&)>& change_far);

  /// Starts engines and lcores. `before` is the last to be done before these run; it may be null.
  [[nodiscard]] Result<void> launch_forwarding(const std::function<Result<void>()>& before = nullptr);

  /// What a command shows of its run while it lasts.
  struct Shown {
    std::function<RunTotals()> totals;     ///< as LiveHooks::sample
    std::function<Tally()> through;        ///< as LiveHooks::progress
    std::function<void()> look = nullptr;  ///< is called by each look of the control loop; may be null
  };
  /// Runs until all that the run is to receive is there, or it is interrupted, and until lcores and engines have ended.
  [[nodiscard]] report::LiveResult supervise(const Shown& shown);

  /// Ends the engines, when supervise() has returned, and the capture with what these gave back last.
  void finish_forwarding();

  /// Ends a run whose engine gives nothing back any more: what is in it stays there.
  void give_up();

  /// Returns what the generator and checker of a loopback did at a rate, each worker with a queue pair of its own:
  /// whether the rate that was asked for was kept. Nothing without a loopback or a rate.
  [[nodiscard]] std::vector<traffic::QueueTotals> far_queues() const;

  /// Returns the GPUs of the run. `memory_bytes` is what the run took of their memory.
  [[nodiscard]] report::GpuTotals gpu_totals(std::uint64_t memory_bytes) const;

  /// Ends what was begun of a run, at any point of it: workers that were launched before an error too. All kernels end
  /// before any memory is given back, which waits for those that run on the same GPU: the engines', and those that copy
  /// for software NICs. More than once does no more.
  void end();

  std::optional<traffic::TrafficPlan> traffic_;
  std::unique_ptr<forward::Forwarder> forwarder_;
  std::unique_ptr<traffic::TrafficGroup> far_;  ///< of a loopback

 private:
  /// Returns what the far side of a loopback does: it sends back and forth what the ports have room for.
  [[nodiscard]] FarOptions far_options() const;
  void make_far_workers();
  [[nodiscard]] Result<void> launch_roles();
  /// Stops the forwarder when all that the run is to receive is there.
  void stop_if_done();
  void stop();

  std::vector<std::unique_ptr<traffic::TrafficWorker>> far_workers_;  ///< by their queue
  std::optional<runtime::Workers> workers_;
};

}  // namespace warpline
