// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
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
#include "stream_settings.h"
#include "warpline/base/output.h"
#include "warpline/gpu/device.h"
#include "warpline/port/removal.h"
#include "warpline/protection/packet_protection.h"
#include "warpline/report/run_end.h"
#include "warpline/report/run_metrics.h"
#include "warpline/runtime/setup_step.h"
#include "warpline/service/streams/compared_streams.h"
#include "warpline/service/streams/ring_reader.h"
#include "warpline/service/streams/stream_consumer.h"
#include "warpline/service/streams/stream_metrics.h"
#include "warpline/service/streams/stream_proxy.h"
#include "warpline/service/streams/stream_report.h"
#include "warpline/service/streams/stream_writer.h"
#include "warpline/stream_port/run/stream_run.h"
#include "warpline/stream_port/seeded_comparer.h"
#include "warpline/transport/udp_socket.h"

namespace warpline {
namespace {

/// One run of `stream receive` or `stream proxy`. Members are destroyed in reverse: the writer ends before the rings
/// that it reads.
class ReceiveCommand : RunFrame {
 public:
  explicit ReceiveCommand(const config::LoadedConfig& loaded) : RunFrame(loaded) {}

  Result<int> run() {
    if (config_.role != config::Role::receive) {  // a file may say so for both
      config_.stream.engine = EngineKind::inline_;
      config_.stream.memory.reset();
      config_.stream.ack = ProcessorKind::cpu;
      config_.stream.io = ProcessorKind::cpu;
      config_.stream.processing = true;
    }
    WARPLINE_CHECK(open_run());
    std::vector<stream_port::StreamApplication*> applications;
    for (std::size_t i = 0; i < port().queues(); ++i) {
      Lane& lane = lanes_.emplace_back();
      WARPLINE_CHECK(config_.role == config::Role::proxy ? make_proxy(lane) : make_consumer(lane));
      applications.push_back(lane.application.get());
    }
    reload_by([this](const config::Config&) -> Result<std::string> {
      if (keys_) return keys_->read_again();
      return std::string();
    });
    WARPLINE_CHECK(answer_metrics([this](metrics::Snapshot& snapshot) {
      service::add(snapshot, service::StreamTotals::of(port()));
      report::add(snapshot, ports());
    }));
    WARPLINE_CHECK(end_set_up());
    WARPLINE_CHECK(run_->launch(applications));
    const IpAddress& address = config_.ports.front().addresses.front().address;
    for (const std::uint16_t listen : config_.stream.listen) {
      put_line(stderr, "warpline: listening on " + to_string(SocketAddress{address, listen}));
    }
    watch();
    run_->end();
    for (const Lane& lane : lanes_) {
      if (lane.writer) lane.writer->stop();
    }
    const int code = report();
    for (const Lane& lane : lanes_) {
      if (lane.writer && lane.writer->failure()) return *lane.writer->failure();
      if (lane.compared != nullptr && lane.compared->failure()) return *lane.compared->failure();
    }
    if (auto failure = run_->failure()) return *std::move(failure);
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
  };

  Result<void> open_run() {
    WARPLINE_TRY(const stream_port::StreamRunSettings settings, receiving_run(config_));
    WARPLINE_CHECK(take_gpu());
    WARPLINE_TRY(run_, stream_port::StreamRun::open(settings));
    lcores_ = run_->plan();
    eal_.emplace(run_->take_eal());
    announce(ports());
    port().queue(0).set_announcer(&announce_by(std::make_unique<port::Announcer>(
        port().port(), port().port().mac(), config_.ports.front().addresses, *port().pool(), config_.stream.vlan)));
    return {};
  }

  /// Takes what the queues need of a GPU. Next to persistent kernels, which the run starts, nothing can be allocated.
  Result<void> take_gpu() {
    const config::StreamConfig& stream = config_.stream;
    if (runs_on_gpu(stream.engine)) {
      WARPLINE_TRY(gpu_, gpu::find_gpu(stream.gpu));
    }
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
    return {};
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
    WARPLINE_TRY(message::Endpoint endpoint, message::Endpoint::create(settings, run_->clock().now()));
    auto proxy = std::make_unique<service::StreamProxy>(std::move(endpoint), *lane.socket, run_->clock(),
                                                        message::peer_address(server.address, server.port),
                                                        stream.connections, stream.ring);
    lane.proxy = proxy.get();
    lane.application = std::move(proxy);
    return {};
  }

  [[nodiscard]] stream_port::StreamPort& port() const { return run_->receiving(); }
  [[nodiscard]] std::span<const port::Port> ports() const { return {&port().port(), 1}; }

  /// Prints a line an interval until the end is there, or asked for.
  void watch() {
    service::StreamTotals before;
    const IntervalLoop loop{.seconds = [this] { return run_->seconds(); },
                            .done = [this] { return run_->over(); },
                            .look = [this](double) { tend(); }};
    interrupted_ = loop.run(config_.run, [&](double now, double since_last) {
      const service::StreamTotals totals = service::StreamTotals::of(port());
      return service::StreamInterval{
          .time_s = now, .seconds = since_last, .before = std::exchange(before, totals), .now = totals};
    });
  }

  int report() {
    service::StreamReport report;
    report.command = fmt::format("stream {}", name(config_.role));
    report.processing = config_.stream.processing;
    report.config = loaded_.to_json();
    report.duration_s = run_->seconds();
    report.receiving_s = run_->receiving_s();
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
      report.engine = service::StreamReport::Engine::of(port(), config_.stream.engine, config_.stream.rings(),
                                                        gpu_ ? gpu_->name : std::string());
    }
    report.lcores = lcore_lines();
    report.notes = notes(ports());
    for (const std::string& refused : port().port().setup().refused) report.notes.push_back(refused);
    report.device = port().port().counters();
    {
      const runtime::SetupStep step("closing the port", runtime::SetupStep::Of::clean_up);
      port().close();
    }
    report.totals = service::StreamTotals::of(port());  // also of frames that lanes had in hand
    report.leaked = port().leaked();
    print(report);
    const bool right = !report.verified || report.verified->bad == 0;
    if (!right || !report.conserved()) return static_cast<int>(ErrorKind::verification);
    if (port::any_removed()) return static_cast<int>(ErrorKind::peer);
    return interrupted_ ? kInterrupted : 0;
  }

  std::optional<gpu::GpuFacts> gpu_;                                     ///< of the engine
  std::vector<std::unique_ptr<service::RingReader>> readers_;            ///< that no queue has taken yet
  std::vector<std::unique_ptr<stream_port::SeededComparer>> comparers_;  ///< likewise
  std::unique_ptr<stream_port::StreamRun> run_;
  std::optional<FileKeys> keys_;  ///< of --key
  std::vector<Lane> lanes_;       ///< by queue
  bool interrupted_ = false;
};

}  // namespace

Result<int> run_stream(const config::LoadedConfig& loaded) { return ReceiveCommand(loaded).run(); }

}  // namespace warpline
