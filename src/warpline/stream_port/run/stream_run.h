// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "warpline/base/address.h"
#include "warpline/base/result.h"
#include "warpline/memory/pool_settings.h"
#include "warpline/port/port_settings.h"
#include "warpline/runtime/eal.h"
#include "warpline/runtime/lcore_plan.h"
#include "warpline/runtime/runtime_settings.h"
#include "warpline/runtime/workers.h"
#include "warpline/stream/receiver_settings.h"
#include "warpline/stream/sender_settings.h"
#include "warpline/stream_port/run/lane_choice.h"
#include "warpline/stream_port/run/send_worker.h"
#include "warpline/stream_port/run/stream_application.h"
#include "warpline/stream_port/run/stream_worker.h"
#include "warpline/stream_port/send_port.h"
#include "warpline/stream_port/stream_port.h"
#include "warpline/transport/nano_clock.h"

namespace warpline::stream_port {

/// The port of a run that receives connections.
struct ReceiveSettings {
  port::PortSettings port{};            ///< the run listens on its first address
  stream::ReceiverSettings receiver{};  ///< per queue; the secret must be random
  std::uint16_t queues = 1;             ///< of the port; each has a worker on its own lcore
  std::uint16_t vlan = 0;               ///< VLAN ID of all frames; 0: untagged
  LaneChoice lanes{};                   ///< the run sets `threads`
};

/// The port of a run that sends connections.
struct SendSettings {
  port::PortSettings port{};           ///< the run sends from its first address
  stream::SenderSettings sender{};     ///< per queue; the secret must be random
  SendPlan plan{};                     ///< `connections` of all queues together
  std::vector<SendSource*> sources{};  ///< one per queue of the port; they outlive the run
  IpAddress next_hop{};                ///< on the port's link: the receiver or a gateway
  std::uint16_t vlan = 0;              ///< VLAN ID of all frames; 0: untagged
  PayloadChoice payload{};             ///< the run sets `threads`
};

/// What a StreamRun consists of: at least one of `receive` and `send`.
struct StreamRunSettings {
  runtime::RuntimeSettings runtime{};        ///< how DPDK is started
  memory::PoolSettings pool{};               ///< per port
  std::optional<ReceiveSettings> receive{};  ///< unset: no port receives
  std::optional<SendSettings> send{};        ///< unset: no port sends
};

/// Returns the workers of a port's queues. `node`: the NUMA node of the port. `lanes`: one worker more per queue,
/// behind these, for the queue's lane.
[[nodiscard]] std::vector<runtime::WorkerRequest> stream_requests(int node, std::uint16_t queues, bool lanes = false);

/// Receives or sends TCP connections by DPDK ports, with all that this needs: it places the workers, starts DPDK, opens
/// the ports and runs a loop per queue. One per process, since DPDK is, or one at a time with RuntimeSettings::keep.
/// One thread, which then is DPDK's control thread, makes all calls. The lcores own the queues from launch() to end().
class StreamRun {
 public:
  /// Places the workers, starts DPDK and opens the ports. Frames are received from here on, but nothing reads them
  /// before launch(). Usage and environment errors say what to change.
  [[nodiscard]] static Result<std::unique_ptr<StreamRun>> open(const StreamRunSettings& settings);
  StreamRun(const StreamRun&) = delete;
  StreamRun& operator=(const StreamRun&) = delete;
  /// Calls end(), closes the ports and stops DPDK.
  ~StreamRun();

  /// Starts the loops. `applications`: one per receiving queue, called on the lcore of that queue; they outlive end().
  /// Usage error: another number of applications than queues. With an error no loop runs.
  [[nodiscard]] Result<void> launch(const std::vector<StreamApplication*>& applications = {});

  /// Returns when `stop` is set or the run is over(); calls end(). The error is that of failure().
  [[nodiscard]] Result<void> run(const std::atomic<bool>& stop);

  // The parts of run(), for a control loop of the caller.

  /// Returns true if an application or an engine has failed, or if all connections that are sent have ended or cannot
  /// continue.
  [[nodiscard]] bool over() const;
  /// Closes connections that are sent behind the bytes offered so far, as SendWorker::finish() does.
  void finish_sending();
  /// Ends the loops and waits for them: received bytes are settled, connections that are open are aborted. Takes half a
  /// second at most. Can be called more than once.
  void end();
  /// Returns the first error of an engine, or that the next hop did not answer. After end().
  [[nodiscard]] std::optional<Error> failure() const;

  /// The port that receives, with its queues. Only with StreamRunSettings::receive.
  [[nodiscard]] StreamPort& receiving() const { return *receiving_; }
  /// The port that sends, with its queues. Only with StreamRunSettings::send.
  [[nodiscard]] SendPort& sending() const { return *sending_; }
  /// The loops that send, one per queue. After launch().
  [[nodiscard]] const std::vector<std::unique_ptr<SendWorker>>& senders() const { return senders_; }

  [[nodiscard]] const transport::NanoClock& clock() const { return clock_; }  ///< of all queues
  /// Returns the seconds since launch().
  [[nodiscard]] double seconds() const;
  /// Returns the seconds from the first byte received to the last, of all queues; 0 before any byte.
  [[nodiscard]] double receiving_s() const;
  /// Returns the seconds from the first SYN sent to the last acknowledgement, of all queues; 0 before any SYN.
  [[nodiscard]] double sending_s() const;
  [[nodiscard]] const runtime::LcorePlan& plan() const { return lcores_; }
  [[nodiscard]] const runtime::Eal& eal() const { return *eal_; }  ///< before take_eal()
  /// Hands DPDK's environment over to an owner that outlives the run.
  [[nodiscard]] runtime::Eal take_eal() { return *std::move(eal_); }

 private:
  StreamRun() = default;

  [[nodiscard]] Result<void> open_ports(const StreamRunSettings& settings, const LaneSetup& lanes,
                                        const PayloadSetup& payload);
  [[nodiscard]] Result<void> launch_workers();
  [[nodiscard]] bool gives_way(std::size_t worker) const { return lcores_.workers[worker].gives_way; }

  // Destroyed in reverse: lcores end before the loops that they run, ports close before DPDK stops.
  transport::NanoClock clock_;
  runtime::LcorePlan lcores_;
  std::optional<runtime::Eal> eal_;
  std::unique_ptr<StreamPort> receiving_;
  std::unique_ptr<SendPort> sending_;
  std::size_t first_sender_ = 0;  ///< the worker of the first queue that sends
  SendPlan plan_;
  std::vector<SendSource*> sources_;
  IpAddress next_hop_;
  std::atomic<bool> stop_{false};
  Nanos started_{};
  std::vector<std::unique_ptr<StreamWorker>> receivers_;  ///< by queue
  std::vector<std::unique_ptr<SendWorker>> senders_;      ///< likewise
  std::optional<runtime::Workers> workers_;
};

}  // namespace warpline::stream_port
