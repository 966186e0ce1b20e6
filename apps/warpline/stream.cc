// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "commands.h"
#include "frame/file_keys.h"
#include "frame/interval_loop.h"
#include "frame/run_frame.h"
#include "stream_layout.h"
#include "warpline/base/output.h"
#include "warpline/gpu/device.h"
#include "warpline/port/removal.h"
#include "warpline/protection/packet_protection.h"
#include "warpline/report/run_end.h"
#include "warpline/report/run_metrics.h"
#include "warpline/runtime/port_spec.h"
#include "warpline/runtime/setup_step.h"
#include "warpline/runtime/workers.h"
#include "warpline/service/streams/compared_streams.h"
#include "warpline/service/streams/ring_reader.h"
#include "warpline/service/streams/stream_consumer.h"
#include "warpline/service/streams/stream_metrics.h"
#include "warpline/service/streams/stream_proxy.h"
#include "warpline/service/streams/stream_report.h"
#include "warpline/service/streams/stream_writer.h"
#include "warpline/stream_port/run/lane_choice.h"
#include "warpline/stream_port/run/stream_worker.h"
#include "warpline/stream_port/stream_port.h"
#include "warpline/transport/nano_clock.h"
#include "warpline/transport/udp_socket.h"

namespace warpline {
namespace {

/// One run of `stream receive` or `stream proxy`. Members are destroyed in reverse: the lcore ends before what it works
/// on, the writer before the rings that it reads.
class StreamRun : RunFrame {
 public:
  explicit StreamRun(const config::LoadedConfig& loaded) : RunFrame(loaded) {}

  Result<int> run() {
    if (config_.role != config::Role::receive) {  // a file may say so for both
      config_.stream.engine = EngineKind::inline_;
      config_.stream.memory.reset();
      config_.stream.ack = ProcessorKind::cpu;
      config_.stream.io = ProcessorKind::cpu;
      config_.stream.processing = true;
    }
    WARPLINE_CHECK(open_port());
    for (std::size_t i = 0; i < port_->queues(); ++i) {
      Lane& lane = lanes_.emplace_back();
      WARPLINE_CHECK(config_.role == config::Role::proxy ? make_proxy(lane) : make_consumer(lane));
      lane.worker = std::make_unique<stream_port::StreamWorker>(port_->queue(i), *lane.application, clock_, stop_,
                                                                lcores_.workers[i].gives_way);
    }
    reload_by([this](const config::Config&) -> Result<std::string> {
      if (keys_) return keys_->read_again();
      return std::string();
    });
    WARPLINE_CHECK(answer_metrics([this](metrics::Snapshot& snapshot) {
      service::add(snapshot, service::StreamTotals::of(*port_));
      report::add(snapshot, ports());
    }));
    started_ = clock_.now();
    // Behind the queues' workers are those of lanes, whose threads are there already.
    WARPLINE_CHECK(launch(lcore_, [this](std::size_t i) {
      if (i < lanes_.size()) lanes_[i].worker->run();
    }));
    const port::PortSettings& port = config_.ports.front();
    for (const std::uint16_t listen : config_.stream.listen) {
      put_line(stderr, "warpline: listening on " + to_string(SocketAddress{port.addresses.front().address, listen}));
    }
    watch();
    stop_.store(true, std::memory_order_relaxed);
    lcore_->wait();
    for (const Lane& lane : lanes_) {
      if (lane.writer) lane.writer->stop();
    }
    const int code = report();
    for (const Lane& lane : lanes_) {
      if (lane.writer && lane.writer->failure()) return *lane.writer->failure();
      if (lane.compared != nullptr && lane.compared->failure()) return *lane.compared->failure();
      if (lane.worker->failure()) return *lane.worker->failure();
    }
    return code;
  }

 private:
  /// What belongs to a queue of the port. Its lcore works on all of it.
  struct Lane {
    std::unique_ptr<service::StreamWriter> writer;
    std::unique_ptr<service::StreamCheck> check;            ///< of --verify, where the CPU reaches the rings
    std::unique_ptr<message::PacketProtection> protection;  ///< proxy: of its messages
    std::unique_ptr<transport::UdpSocket> socket;           ///< proxy: where they leave
    std::unique_ptr<stream_port::StreamApplication> application;
    const service::StreamProxy* proxy = nullptr;         ///< `application`, if it is one
    const service::ComparedStreams* compared = nullptr;  ///< likewise
    const Histogram* chunk_times = nullptr;              ///< of `application`, if it has them
    std::unique_ptr<stream_port::StreamWorker> worker;
  };

  Result<void> open_port() {
    const port::PortSettings& port = config_.ports.front();
    WARPLINE_CHECK(runtime::check_port_spec(port.spec));
    const std::uint16_t queues = config_.stream.pipelines;
    const bool threads = config_.stream.engine == EngineKind::thread;
    WARPLINE_CHECK(place(stream_requests(runtime::port_node(port.spec), queues, threads)));
    WARPLINE_TRY(const stream::ReceiverSettings settings, config_.stream.receiver());
    WARPLINE_TRY(const stream_port::LaneSetup lanes, choose_lanes());
    WARPLINE_CHECK(start_eal({port.spec}, stream_port::StreamPort::memory(port, config_.pool, queues, lanes)));
    WARPLINE_TRY(port_, stream_port::StreamPort::open(port, config_.pool, settings, clock_.now(), std::nullopt, queues,
                                                      config_.stream.vlan, lanes));
    announce(ports());
    port_->queue(0).set_announcer(&announce_by(std::make_unique<port::Announcer>(
        port_->port(), port_->port().mac(), port.addresses, *port_->pool(), config_.stream.vlan)));
    return {};
  }

  Result<stream_port::LaneSetup> choose_lanes() {
    const config::StreamConfig& stream = config_.stream;
    if (runs_on_gpu(stream.engine)) {
      WARPLINE_TRY(gpu_, gpu::find_gpu(stream.gpu));
    }
    // Beside kernels that stay nothing more is to be had.
    for (std::uint16_t i = 0; stream.rings() == memory::MemoryKind::device && i < stream.pipelines; ++i) {
      if (!stream.output.empty()) {
        WARPLINE_TRY(service::RingReader reader, service::RingReader::create(stream.gpu));
        readers_.push_back(std::make_unique<service::RingReader>(std::move(reader)));
      }
      if (config_.run.verify) {
        WARPLINE_TRY(auto comparer,
                     stream_port::make_gpu_comparer(stream.gpu, stream::SeededPayload(config_.run.seed)));
        comparers_.push_back(std::move(comparer));
      }
    }
    return stream_port::lane_setup(stream_lanes(stream, lcores_));
  }

  /// Returns what was made for a queue's rings; null where they are in host memory.
  template <typename T>
  [[nodiscard]] static std::unique_ptr<T> next_of(std::vector<std::unique_ptr<T>>& made) {
    if (made.empty()) return nullptr;
    auto next = std::move(made.back());
    made.pop_back();
    return next;
  }

  Result<void> make_consumer(Lane& lane) {
    if (!config_.stream.output.empty()) {
      WARPLINE_TRY(lane.writer, service::StreamWriter::start(config_.stream.output, config_.stream.connections,
                                                             config_.stream.pipelines, next_of(readers_)));
    }
    if (auto comparer = next_of(comparers_)) {
      auto compared = std::make_unique<service::ComparedStreams>(config_.stream.connections, std::move(comparer),
                                                                 config_.stream.chunk);
      lane.chunk_times = &compared->chunk_times();
      lane.compared = compared.get();
      lane.application = std::move(compared);
      return {};
    }
    if (config_.run.verify) lane.check = std::make_unique<service::StreamCheck>(config_.run.seed);
    auto consumer = std::make_unique<service::StreamConsumer>(
        config_.stream.connections, config_.stream.ring, lane.writer.get(), lane.check.get(), config_.stream.chunk);
    lane.chunk_times = &consumer->chunk_times();
    lane.application = std::move(consumer);
    return {};
  }

  Result<void> make_proxy(Lane& lane) {
    const config::StreamConfig& stream = config_.stream;
    const SocketAddress& server = *stream.connect;
    message::EndpointConfig settings;
    settings.accept = false;
    settings.peer_timeout = stream.peer_timeout;
    settings.connect_timeout = stream.peer_timeout;
    settings.max_sessions = 2 * stream.connections;  // those of connections that ended say goodbye meanwhile
    settings.max_messages = std::max<std::uint32_t>(16 * stream.connections, 4096);
    if (!stream.key.empty()) {
      if (!keys_) {
        WARPLINE_TRY(keys_, FileKeys::read(stream.key));
      }
      WARPLINE_TRY(lane.protection, protection::make_protection(keys_->keys(), settings.max_sessions));
      settings.protection = lane.protection.get();
    }
    const bool v6 = std::holds_alternative<Ipv6Address>(server.address);
    WARPLINE_TRY(lane.socket,
                 transport::UdpSocket::open({.local = {v6 ? IpAddress{Ipv6Address{}} : IpAddress{Ipv4Address{}}, 0},
                                             .datagram_bytes = settings.datagram_bytes}));
    WARPLINE_TRY(message::Endpoint endpoint, message::Endpoint::create(settings, clock_.now()));
    auto proxy = std::make_unique<service::StreamProxy>(std::move(endpoint), *lane.socket, clock_,
                                                        message::peer_address(server.address, server.port),
                                                        stream.connections, stream.ring);
    lane.proxy = proxy.get();
    lane.application = std::move(proxy);
    return {};
  }

  [[nodiscard]] std::span<const port::Port> ports() const { return {&port_->port(), 1}; }
  [[nodiscard]] double seconds() const { return static_cast<double>(clock_.now().value - started_.value) / 1e9; }

  /// Prints a line an interval until the end is there, or asked for.
  void watch() {
    service::StreamTotals before;
    const auto done = [this] {
      return std::ranges::any_of(lanes_, [](const Lane& lane) { return lane.worker->done(); });
    };
    const auto look = [this](double) { tend(); };
    const IntervalLoop loop{.seconds = [this] { return seconds(); }, .done = done, .look = look};
    interrupted_ = loop.run(config_.run, [&](double now, double since_last) {
      const service::StreamTotals totals = service::StreamTotals::of(*port_);
      return service::StreamInterval{
          .time_s = now, .seconds = since_last, .before = std::exchange(before, totals), .now = totals};
    });
  }

  /// Returns the seconds from the first byte of payload to the last, of whichever queues.
  [[nodiscard]] double receiving_s() const {
    std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t last = 0;
    for (const Lane& lane : lanes_) {
      if (lane.worker->last_byte() == 0) continue;
      first = std::min(first, lane.worker->first_byte());
      last = std::max(last, lane.worker->last_byte());
    }
    return last == 0 ? 0 : static_cast<double>(last - first) / 1e9;
  }

  int report() {
    service::StreamReport report;
    report.command = fmt::format("stream {}", name(config_.role));
    report.processing = config_.stream.processing;
    report.config = loaded_.to_json();
    report.duration_s = seconds();
    report.receiving_s = receiving_s();
    for (const Lane& lane : lanes_) {
      if (!lane.writer) continue;
      if (!report.written) report.written = service::StreamReport::Written{};
      report.written->files += lane.writer->files();
      report.written->bytes += lane.writer->bytes();
    }
    for (const Lane& lane : lanes_) {
      if (!lane.check && lane.compared == nullptr) continue;
      if (!report.verified) report.verified = service::StreamReport::Verified{};
      report.verified->checked += lane.compared != nullptr ? lane.compared->checked() : lane.check->checked.get();
      report.verified->bad += lane.compared != nullptr ? lane.compared->wrong() : lane.check->bad.get();
    }
    for (const Lane& lane : lanes_) {
      if (lane.proxy == nullptr) continue;
      if (!report.relayed) report.relayed = service::StreamReport::Relayed{};
      const service::RelayCounters& counters = lane.proxy->counters();
      report.relayed->connections += counters.connections.get();
      report.relayed->bytes += counters.delivered.get();
      report.relayed->ended += counters.ended.get();
      report.relayed->lost_sessions += counters.lost_sessions.get();
      report.relayed->no_session += counters.no_session.get();
    }
    Histogram chunks;
    for (const Lane& lane : lanes_) {
      if (lane.chunk_times != nullptr) chunks.merge(*lane.chunk_times);
    }
    report.chunks = LatencyTotals::of(chunks);
    if (config_.stream.engine != EngineKind::inline_) {
      report.engine = service::StreamReport::Engine::of(*port_, config_.stream.engine, config_.stream.rings(),
                                                        gpu_ ? gpu_->name : std::string());
    }
    report.lcores = lcore_lines();
    report.notes = notes(ports());
    for (const std::string& refused : port_->port().setup().refused) report.notes.push_back(refused);
    report.device = port_->port().counters();
    {
      const runtime::SetupStep step("closing the port", runtime::SetupStep::Of::clean_up);
      port_->close();
    }
    report.totals = service::StreamTotals::of(*port_);  // also of frames that lanes had in hand
    report.leaked = port_->leaked();
    print(report);
    const bool right = !report.verified || report.verified->bad == 0;
    if (!right || !report.conserved()) return static_cast<int>(ErrorKind::verification);
    if (port::any_removed()) return static_cast<int>(ErrorKind::peer);
    return interrupted_ ? kInterrupted : 0;
  }

  transport::NanoClock clock_;
  std::optional<gpu::GpuFacts> gpu_;                                     ///< of the engine
  std::vector<std::unique_ptr<service::RingReader>> readers_;            ///< that no queue has taken yet
  std::vector<std::unique_ptr<stream_port::SeededComparer>> comparers_;  ///< likewise
  std::unique_ptr<stream_port::StreamPort> port_;
  std::atomic<bool> stop_{false};
  std::optional<FileKeys> keys_;  ///< of --key
  std::vector<Lane> lanes_;       ///< by queue
  std::optional<runtime::Workers> lcore_;
  Nanos started_;
  bool interrupted_ = false;
};

}  // namespace

Result<int> run_stream(const config::LoadedConfig& loaded) { return StreamRun(loaded).run(); }

}  // namespace warpline
