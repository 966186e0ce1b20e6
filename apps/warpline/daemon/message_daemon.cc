// SPDX-License-Identifier: Apache-2.0
#include "warpline/daemon/message_daemon.h"

#include <spdlog/spdlog.h>

#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "commands.h"
#include "daemon/daemon_report.h"
#include "frame/file_keys.h"
#include "frame/interval_loop.h"
#include "frame/run_frame.h"
#include "message_layout.h"
#include "warpline/base/output.h"
#include "warpline/port/removal.h"
#include "warpline/protection/packet_protection.h"
#include "warpline/report/run_end.h"
#include "warpline/report/run_metrics.h"
#include "warpline/runtime/port_spec.h"
#include "warpline/runtime/setup_step.h"
#include "warpline/runtime/stop.h"
#include "warpline/runtime/workers.h"
#include "warpline/service/message_metrics.h"
#include "warpline/service/totals.h"
#include "warpline/transport/udp_socket.h"

namespace warpline {
namespace {

/// One run of `message daemon`. Members are destroyed in reverse: the thread ends before the daemon, the daemon before
/// what carries its datagrams.
class MessageDaemonRun : RunFrame {
 public:
  explicit MessageDaemonRun(const config::LoadedConfig& loaded) : RunFrame(loaded), plan_(config_) {}

  Result<int> run() {
    WARPLINE_TRY(message::EndpointConfig endpoint,
                 daemon::with_room_for_clients(plan_.endpoint(0), config_.message.daemon));
    if (!config_.message.key.empty()) {
      WARPLINE_TRY(keys_, FileKeys::read(config_.message.key));
      WARPLINE_TRY(protection_, protection::make_protection(keys_->keys(), endpoint.max_sessions));
      endpoint.protection = protection_.get();
    }
    WARPLINE_CHECK(plan_.on_socket() ? open_socket() : open_port());
    WARPLINE_TRY(message::Endpoint made, message::Endpoint::create(endpoint, clock_.now()));
    const bool gives_way = !port_ || lcores_.workers[0].gives_way;
    WARPLINE_TRY(daemon_, daemon::MessageDaemon::open(std::move(made), endpoint, *transport_, config_.message.daemon,
                                                      gives_way));
    reload_by([this](const config::Config& next) { return take_over(next); });
    WARPLINE_CHECK(answer_metrics([this](metrics::Snapshot& snapshot) { add_metrics(snapshot); }));
    WARPLINE_CHECK(launch_daemon());
    put_line(stderr, "warpline: listening on " + to_string(config_.message.listen) + ", and for programs at " +
                         config_.message.daemon.path);
    watch();
    daemon_->stop();
    if (thread_.joinable()) thread_.join();
    if (workers_) workers_->wait();
    return report();
  }

  ~MessageDaemonRun() {
    if (!thread_.joinable()) return;
    daemon_->stop();
    thread_.join();
  }
  MessageDaemonRun(const MessageDaemonRun&) = delete;
  MessageDaemonRun& operator=(const MessageDaemonRun&) = delete;

 private:
  Result<void> open_socket() {
    WARPLINE_TRY(socket_, transport::UdpSocket::open(
                              {.local = config_.message.listen, .datagram_bytes = plan_.datagram_bytes()}));
    transport_ = socket_.get();
    return {};
  }

  Result<void> open_port() {
    const port::PortSettings& port = config_.ports.front();
    WARPLINE_CHECK(runtime::check_port_spec(port.spec));
    WARPLINE_CHECK(place(message_requests(config_, runtime::port_node(port.spec))));
    transport::MessagePortConfig setup = plan_.port(config_.message.listen.port);
    setup.max_sessions += config_.message.daemon.clients * config_.message.daemon.client.sessions;
    WARPLINE_CHECK(start_eal({port.spec}, Bytes{transport::MessagePort::memory(port, setup).value + (4U << 20)}));
    WARPLINE_TRY(port_, transport::MessagePort::open(port, setup));
    transport_ = &port_->queue(0);
    announce(ports());
    return {};
  }

  [[nodiscard]] std::span<const port::Port> ports() const { return {&port_->port(), 1}; }

  Result<std::string> take_over(const config::Config& next) {
    std::string said;
    if (keys_) {
      WARPLINE_TRY(said, keys_->read_again());
    }
    daemon_->limit_peers(next.message.quotas, next.message.strangers);
    return said;
  }

  Result<void> launch_daemon() {
    started_ = clock_.now();
    if (!port_) {
      WARPLINE_CHECK(end_set_up());
      thread_ = std::thread([this] { daemon_->run(); });
      return {};
    }
    Result<void> launched = launch(workers_, [this](std::size_t) { daemon_->run(); });
    if (!launched) daemon_->stop();
    return launched;
  }

  [[nodiscard]] double seconds() const { return static_cast<double>(clock_.now().value - started_.value) / 1e9; }

  void add_metrics(metrics::Snapshot& snapshot) const {
    service::add(snapshot, daemon_totals(*daemon_));
    service::PacketTotals packets;
    packets.add(daemon_->endpoint().counters());
    packets.add(transport_->counters());
    service::add(snapshot, packets);
    add_door_metrics(snapshot, *daemon_);
    if (port_) report::add(snapshot, ports());
  }

  void watch() {
    service::MessageTotals before;
    std::uint64_t lost_before = 0;
    const IntervalLoop loop{.seconds = [this] { return seconds(); },
                            .done = [this] { return daemon_->done(); },
                            .look =
                                [&](double) {
                                  tend();
                                  if (!port_) return;
                                  for (const std::string& line : port_->tend(clock_.now())) spdlog::warn("{}", line);
                                }};
    interrupted_ = loop.run(config_.run, [&](double now, double since_last) {
      const service::MessageTotals totals = daemon_totals(*daemon_);
      const std::uint64_t lost = daemon_->endpoint().counters().packets_lost.get();
      const service::MessageTotals then = std::exchange(before, totals);
      return service::MessageInterval{.time_s = now,
                                      .seconds = since_last,
                                      .done = totals.done() - then.done(),
                                      .bytes_out = totals.bytes_out - then.bytes_out,
                                      .bytes_in = totals.bytes_in - then.bytes_in,
                                      .lost_packets = lost - std::exchange(lost_before, lost)};
    });
    measured_ = daemon_totals(*daemon_);
    measured_s_ = seconds();
  }

  int report() {
    service::MessageReport report;
    report.command = "message daemon";
    report.config = loaded_.to_json();
    report.duration_s = seconds();
    report.measured_s = measured_s_;
    report.measured = measured_;
    report.totals = daemon_totals(*daemon_);
    report.packets.add(daemon_->endpoint().counters());
    report.packets.add(transport_->counters());
    report.door = door_json(*daemon_);
    report.clients = clients_json(*daemon_, clock_.now());
    const bool failed = transport_->failed();
    if (port_) {
      report.lcores = lcore_lines();
      report.notes = notes(ports());
      for (const std::string& refused : port_->port().setup().refused) report.notes.push_back(refused);
      const runtime::SetupStep step("giving back the memory of messages", runtime::SetupStep::Of::clean_up);
      daemon_.reset();
      port_->close();
      report.leaked = port_->leaked();
    }
    print(report);
    if (!report.conserved()) return static_cast<int>(ErrorKind::verification);
    if (failed) return static_cast<int>(ErrorKind::environment);
    if (port::any_removed()) return static_cast<int>(ErrorKind::peer);
    return interrupted_ ? kInterrupted : 0;
  }

  MessagePlan plan_;
  transport::NanoClock clock_;
  std::optional<FileKeys> keys_;  ///< of --key
  std::unique_ptr<message::PacketProtection> protection_;
  std::unique_ptr<transport::UdpSocket> socket_;
  std::unique_ptr<transport::MessagePort> port_;
  transport::Transport* transport_ = nullptr;
  std::unique_ptr<daemon::MessageDaemon> daemon_;
  std::optional<runtime::Workers> workers_;  ///< of a port
  std::thread thread_;                       ///< on a socket
  Nanos started_;
  service::MessageTotals measured_;
  double measured_s_ = 0;
  bool interrupted_ = false;
};

}  // namespace

Result<int> run_message_daemon(const config::LoadedConfig& loaded) { return MessageDaemonRun(loaded).run(); }

}  // namespace warpline
