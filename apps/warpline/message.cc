// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "commands.h"
#include "frame/file_keys.h"
#include "frame/interval_loop.h"
#include "frame/run_frame.h"
#include "message_layout.h"
#include "warpline/base/output.h"
#include "warpline/base/secrets/draw_secret.h"
#include "warpline/gpu/device.h"
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
#include "warpline/service/worker.h"
#include "warpline/transport/udp_socket.h"

namespace warpline {
namespace {

/// One run of `message`, server or client. Members are destroyed in reverse: threads end before what they run,
/// endpoints before what carries them. On sockets there are neither ports nor lcores.
class MessageRun : RunFrame {
 public:
  explicit MessageRun(const config::LoadedConfig& loaded)
      : RunFrame(loaded), plan_(config_), parts_(config_.message.workers) {}

  Result<int> run() {
    WARPLINE_CHECK(read_keys());
    if (for_gpu()) {
      const runtime::SetupStep step(fmt::format("asking CUDA for GPU {}", config_.message.gpu));
      WARPLINE_CHECK(gpu::find_gpu(config_.message.gpu));
    }
    WARPLINE_CHECK(plan_.on_socket() ? open_sockets() : open_port());
    if (for_gpu()) {
      const runtime::SetupStep step("allocating the memory of messages");
      WARPLINE_TRY(gpu_memory_, service::MessageMemory::make(plan_.memory(), pattern_, port_.get()));
    }
    WARPLINE_CHECK(make_workers());
    if (gpu_memory_) WARPLINE_CHECK(gpu_memory_->start());
    reload_by([this](const config::Config& next) { return take_over(next); });
    WARPLINE_CHECK(answer_metrics([this](metrics::Snapshot& snapshot) { add_metrics(snapshot); }));
    WARPLINE_CHECK(launch_parts());
    if (!plan_.client()) put_line(stderr, "warpline: listening on " + to_string(config_.message.listen));
    watch();
    finish();
    const std::optional<Error> failure = gpu_memory_ ? gpu_memory_->failure() : std::nullopt;
    const int code = report();
    if (failure) return *failure;
    return code;
  }

 private:
  struct Part {
    std::unique_ptr<message::PacketProtection> protection;
    std::unique_ptr<transport::UdpSocket> socket;
    transport::Transport* transport = nullptr;
    std::unique_ptr<service::MessageApp> app;
    std::unique_ptr<service::MessageWorker> worker;
    std::thread thread;  ///< on sockets; a port's workers have lcores
  };

  [[nodiscard]] bool for_gpu() const { return config_.pool.memory != memory::MemoryKind::host; }
  [[nodiscard]] std::uint64_t pattern_bytes() const { return service::MessagePattern::bytes_for(plan_.longest()); }

  Result<void> read_keys() {
    if (config_.message.key.empty()) return {};
    WARPLINE_TRY(keys_, FileKeys::read(config_.message.key));
    for (std::uint16_t i = 0; i < parts_.size(); ++i) {
      const message::EndpointConfig endpoint = plan_.endpoint(i);
      WARPLINE_TRY(parts_[i].protection, protection::make_protection(keys_->keys(), endpoint.max_sessions));
    }
    return {};
  }

  /// A client's workers each have a port, those of a server share one.
  Result<void> open_sockets() {
    transport::UdpSocketConfig socket{.local = config_.message.listen, .datagram_bytes = plan_.datagram_bytes()};
    std::vector<std::unique_ptr<transport::UdpSocket>> group;
    if (plan_.client()) {
      const bool v6 = std::holds_alternative<Ipv6Address>(config_.message.connect.front().address);
      socket.local = {v6 ? IpAddress{Ipv6Address{}} : IpAddress{Ipv4Address{}}, 0};
    } else {
      WARPLINE_TRY(group, transport::UdpSocket::open_group(socket, static_cast<std::uint32_t>(parts_.size())));
    }
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (plan_.client()) {
        WARPLINE_TRY(parts_[i].socket, transport::UdpSocket::open(socket));
      } else {
        parts_[i].socket = std::move(group[i]);
      }
      parts_[i].transport = parts_[i].socket.get();
    }
    memory_.resize(pattern_bytes());
    pattern_ = service::MessagePattern(memory_);
    return {};
  }

  Result<void> open_port() {
    const port::PortSettings& port = config_.ports.front();
    WARPLINE_CHECK(runtime::check_port_spec(port.spec));
    WARPLINE_CHECK(place(message_requests(config_, runtime::port_node(port.spec))));
    const auto own_port = static_cast<std::uint16_t>(49'152 + std::random_device{}() % 8192);
    const transport::MessagePortConfig setup = plan_.port(own_port);
    const Bytes memory{transport::MessagePort::memory(port, setup).value + pattern_bytes() +
                       (for_gpu() ? plan_.memory().port_bytes() : 0) + (4U << 20)};
    WARPLINE_CHECK(start_eal({port.spec}, memory));
    WARPLINE_TRY(port_, transport::MessagePort::open(port, setup));
    WARPLINE_TRY(const std::span<std::uint8_t> bytes, port_->allocate(pattern_bytes()));
    pattern_ = service::MessagePattern(bytes);
    for (std::uint16_t i = 0; i < parts_.size(); ++i) parts_[i].transport = &port_->queue(i);
    announce(ports());
    return {};
  }

  [[nodiscard]] std::span<const port::Port> ports() const { return {&port_->port(), 1}; }

  /// Many sessions are gigabytes, all of which are written.
  Result<void> make_workers() {
    runtime::SetupStep step("making the sessions of the workers", parts_.size());
    for (std::uint16_t i = 0; i < parts_.size(); ++i) {
      WARPLINE_CHECK(make_worker(i));
      step.advance();
    }
    return {};
  }

  Result<void> make_worker(std::uint16_t number) {
    Part& part = parts_[number];
    message::EndpointConfig endpoint_config = plan_.endpoint(number);
    endpoint_config.protection = part.protection.get();
    service::MessageStore store;
    transport::Transport* transport = part.transport;
    if (gpu_memory_) {
      WARPLINE_TRY(transport, gpu_memory_->add_worker(number, *transport, part.socket.get()));
      gpu_memory_->apply(number, endpoint_config);
      store = gpu_memory_->store(number);
    }
    WARPLINE_TRY(message::Endpoint endpoint, message::Endpoint::create(endpoint_config, clock_.now()));
    if (plan_.client()) {
      service::MessageClient::Plan plan = plan_.client_plan(number);
      if (loaded_.is_given("run.seed")) {
        plan.seed = config_.run.seed + number;
      } else {
        WARPLINE_CHECK(draw_secret({reinterpret_cast<std::uint8_t*>(&plan.seed), sizeof(plan.seed)}));
      }
      auto client = std::make_unique<service::MessageClient>(std::move(plan), pattern_, stop_, store);
      clients_.push_back(client.get());
      part.app = std::move(client);
    } else {
      part.app = std::make_unique<service::MessageServer>(pattern_, plan_.longest(), endpoint_config, stop_, store);
    }
    part.worker =
        std::make_unique<service::MessageWorker>(std::move(endpoint), *transport, *part.app, clock_, gives_way(number));
    return {};
  }

  Result<std::string> take_over(const config::Config& next) {
    std::string said;
    if (keys_) {
      WARPLINE_TRY(said, keys_->read_again());
    }
    for (const Part& part : parts_) part.worker->limit_peers(next.message.quotas, next.message.strangers);
    return said;
  }

  Result<void> launch_parts() {
    started_ = clock_.now();
    if (port_) {
      Result<void> launched = launch(workers_, [this](std::size_t i) { parts_[i].worker->run(); });
      if (!launched) stop_ = true;
      return launched;
    }
    WARPLINE_CHECK(end_set_up());
    for (Part& part : parts_) part.thread = std::thread([worker = part.worker.get()] { worker->run(); });
    return {};
  }

  [[nodiscard]] double seconds() const { return static_cast<double>(clock_.now().value - started_.value) / 1e9; }
  [[nodiscard]] bool all_done() const {
    return std::ranges::all_of(parts_, [](const Part& part) { return part.worker->done(); });
  }

  [[nodiscard]] service::MessageTotals totals() const {
    service::MessageTotals totals;
    for (const Part& part : parts_) totals.add(part.app->tally());
    return totals;
  }

  [[nodiscard]] service::PacketTotals packets() const {
    service::PacketTotals packets;
    for (const Part& part : parts_) {
      packets.add(part.worker->endpoint().counters());
      packets.add(part.transport->counters());
    }
    return packets;
  }

  /// On sockets the scheduler places the threads, perhaps beside each other.
  [[nodiscard]] bool gives_way(std::uint16_t worker) const { return !port_ || lcores_.workers[worker].gives_way; }

  void merge_latency(Histogram& into) const {
    for (const Part& part : parts_) into.merge(part.app->tally().latency);
  }

  void add_metrics(metrics::Snapshot& snapshot) const {
    service::add(snapshot, totals());
    service::add(snapshot, packets());
    auto latency = std::make_unique<Histogram>();
    merge_latency(*latency);
    snapshot.summary("warpline_message_latency_seconds", "From a request to its response, of the run so far",
                     LatencyTotals::of(*latency));
    if (port_) report::add(snapshot, ports());
  }

  [[nodiscard]] std::uint64_t packets_lost() const {
    std::uint64_t lost = 0;
    for (const Part& part : parts_) lost += part.worker->endpoint().counters().packets_lost.get();
    return lost;
  }

  /// Prints a line an interval until the end is there, or asked for.
  void watch() {
    service::MessageTotals before;
    std::uint64_t lost_before = 0;
    const IntervalLoop loop{.seconds = [this] { return seconds(); },
                            .done = [this] { return all_done(); },
                            .look =
                                [&](double) {
                                  tend();
                                  if (!port_) return;
                                  for (const std::string& line : port_->tend(clock_.now())) spdlog::warn("{}", line);
                                }};
    interrupted_ = loop.run(config_.run, [&](double now, double since_last) {
      const service::MessageTotals totals = this->totals();
      const std::uint64_t lost = packets_lost();
      auto latency = std::make_unique<Histogram>();
      merge_latency(*latency);
      const service::MessageTotals then = std::exchange(before, totals);
      return service::MessageInterval{.time_s = now,
                                      .seconds = since_last,
                                      .done = totals.done() - then.done(),
                                      .bytes_out = totals.bytes_out - then.bytes_out,
                                      .bytes_in = totals.bytes_in - then.bytes_in,
                                      .lost_packets = lost - std::exchange(lost_before, lost),
                                      .p50 = latency->quantile(0.5),
                                      .p99 = latency->quantile(0.99)};
    });
    measured_ = totals();
    measured_s_ = seconds();
  }

  void finish() {
    stop_.store(true, std::memory_order_relaxed);
    for (Part& part : parts_) {
      if (part.thread.joinable()) part.thread.join();
    }
    if (workers_) workers_->wait();
  }

  int report() {
    service::MessageReport report;
    report.command = plan_.client() ? "message client" : "message server";
    report.config = loaded_.to_json();
    report.duration_s = seconds();
    report.measured_s = measured_s_;
    report.measured = measured_;
    report.totals = totals();
    report.packets = packets();
    auto latency = std::make_unique<Histogram>();
    merge_latency(*latency);
    report.latency = latency.get();
    for (const Part& part : parts_) {
      const auto& losses = part.app->tally().losses;
      report.losses.insert(report.losses.end(), losses.begin(), losses.end());
    }
    report.peer_timeout = config_.message.peer_timeout;
    report.verify = config_.run.verify;
    if (gpu_memory_) report.gpu = gpu_memory_->facts();
    if (port_) {
      report.lcores = lcore_lines();
      report.notes = notes(ports());
      for (const std::string& refused : port_->port().setup().refused) report.notes.push_back(refused);
      const runtime::SetupStep step("giving back the memory of messages", runtime::SetupStep::Of::clean_up);
      for (Part& part : parts_) part.worker.reset();
      gpu_memory_.reset();
      port_->close();
      report.leaked = port_->leaked();
    }
    print(report);
    return exit_code(report);
  }

  [[nodiscard]] int exit_code(const service::MessageReport& report) const {
    if (!report.conserved() || report.totals.bad != 0) return static_cast<int>(ErrorKind::verification);
    if (port::any_removed()) return static_cast<int>(ErrorKind::peer);
    if (interrupted_) return kInterrupted;
    if (!plan_.client()) return 0;
    const auto failed = [&](message::MessageStatus status) {
      return report.totals.completed[static_cast<std::size_t>(status)];
    };
    const bool lost = !config_.message.reconnect && failed(message::MessageStatus::peer_lost) != 0;
    const bool some_gone =
        !std::ranges::all_of(clients_, [](const service::MessageClient* client) { return client->alive(); });
    if (report.totals.connected == 0 || lost || (some_gone && !ended_by_itself(report))) {
      spdlog::error("the server is gone: {}; start it, or check the way there",
                    report.totals.connected == 0 ? "no session was accepted" : "sessions were lost");
      return static_cast<int>(ErrorKind::peer);
    }
    std::uint64_t refused = 0;
    for (const service::MessageClient* client : clients_) refused += client->refused();
    if (refused != 0) {
      spdlog::error(
          "{} of {} sessions were not accepted; see \"lost\" for the reasons: raise the server's --sessions or "
          "its limits for an address, or open fewer sessions",
          refused, config_.message.parallel);
      return static_cast<int>(ErrorKind::peer);
    }
    return 0;
  }

  /// All that was to be asked was answered.
  [[nodiscard]] bool ended_by_itself(const service::MessageReport& report) const {
    return config_.message.requests != 0 && report.totals.done() >= config_.message.requests;
  }

  MessagePlan plan_;
  transport::NanoClock clock_;
  std::vector<std::uint8_t> memory_;
  std::unique_ptr<transport::MessagePort> port_;
  service::MessagePattern pattern_;
  std::atomic<bool> stop_{false};
  std::optional<FileKeys> keys_;  ///< of --key
  std::vector<Part> parts_;
  std::unique_ptr<service::MessageMemory> gpu_memory_;  ///< goes before the sockets whose buffers it has opened
  std::vector<const service::MessageClient*> clients_;
  std::optional<runtime::Workers> workers_;  ///< of a port
  Nanos started_;
  service::MessageTotals measured_;
  double measured_s_ = 0;
  bool interrupted_ = false;
};

}  // namespace

Result<int> run_message(const config::LoadedConfig& loaded) { return MessageRun(loaded).run(); }

}  // namespace warpline
