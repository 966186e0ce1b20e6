// SPDX-License-Identifier: Apache-2.0
#include "transfers/transfer.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "warpline/memory/pool_settings.h"
#include "warpline/port/port_settings.h"
#include "warpline/runtime/workers.h"
#include "warpline/service/streams/compared_streams.h"
#include "warpline/service/streams/send/seeded_source.h"
#include "warpline/service/streams/send/send_report.h"
#include "warpline/service/streams/stream_consumer.h"
#include "warpline/service/streams/stream_report.h"
#include "warpline/stream_port/run/lane_choice.h"
#include "warpline/stream_port/run/send_worker.h"
#include "warpline/stream_port/run/stream_worker.h"
#include "warpline/stream_port/seeded_comparer.h"
#include "warpline/stream_port/send_port.h"
#include "warpline/stream_port/stream_port.h"
#include "warpline/transport/nano_clock.h"

namespace warpline::transfers {
namespace {

constexpr std::uint16_t kListen = 5001;
constexpr std::uint16_t kLargestMtu = 9000;
/// A wire holds what all windows together let be on their way: frames beyond are lost to it.
constexpr std::uint64_t kWireBytes = 16 << 20;
constexpr auto kLook = std::chrono::milliseconds(1);
constexpr Ipv4Address kReceiverAddress{{10, 9, 0, 2}};
constexpr Ipv4Address kSenderAddress{{10, 9, 0, 1}};

port::PortSettings port_settings(std::uint32_t number, std::uint32_t joined_to, const Ipv4Address& address,
                                 std::uint16_t mtu) {
  port::PortSettings port;
  port.spec = fmt::format("net_vnic{},wire=net_vnic{},buffer={}", number, joined_to, kWireBytes);
  port.mtu = mtu;
  port.addresses = {{address, 24}};
  return port;
}

port::PortSettings receiving_port(std::uint32_t pair, std::uint16_t mtu) {
  return port_settings(2 * pair, 2 * pair + 1, kReceiverAddress, mtu);
}

port::PortSettings sending_port(std::uint32_t pair, std::uint16_t mtu) {
  return port_settings(2 * pair + 1, 2 * pair, kSenderAddress, mtu);
}

Result<stream_port::LaneSetup> lanes_of(EngineKind engine, int gpu, ProcessorKind io = ProcessorKind::cpu) {
  return stream_port::lane_setup(
      {.engine = engine, .rings = memory::MemoryKind::device, .gpu = gpu, .queues = io == ProcessorKind::gpu});
}

/// Returns how connections with windows of so many bytes have payload put into their frames.
Result<stream_port::PayloadSetup> payload_of(EngineKind engine, int gpu, std::uint64_t window,
                                             const stream::SeededPayload& payload) {
  return stream_port::payload_setup({.engine = engine,
                                     .rings = memory::MemoryKind::device,
                                     .gpu = gpu,
                                     .window = window,
                                     .bytes = &payload,
                                     .threads = {{.cpu = {}, .yield = true}}});
}

Result<void> draw_secret(std::array<std::uint8_t, 16>& secret) {
  if (::getrandom(secret.data(), secret.size(), 0) == static_cast<ssize_t>(secret.size())) return {};
  return environment_error("cannot make a secret", "the kernel gives no random numbers", "check `man getrandom`");
}

Error verification_error(std::string what) {
  return Error{ErrorKind::verification, std::move(what), "receiver and sender do not agree", "report it"};
}

/// Two ports, and who receives and sends there. Members are destroyed in reverse: ports close before what they send.
class TransferPair {
 public:
  TransferPair(const Transfer& transfer, const transport::NanoClock& clock)
      : transfer_(transfer), clock_(clock), source_(transfer.seed, transfer.connections) {}

  /// Takes what a GPU gives. Of all pairs before the first of them opens: beside kernels that stay nothing more is to
  /// be had.
  Result<void> prepare() {
    if (!runs_on_gpu(transfer_.engine) || !transfer_.verify) return {};
    WARPLINE_TRY(comparer_, stream_port::make_gpu_comparer(transfer_.gpu, stream::SeededPayload(transfer_.seed)));
    return {};
  }

  Result<void> open(std::uint32_t number, const stream_port::LaneSetup& lanes) {
    stream::ReceiverSettings receiver;
    receiver.ports = {kListen};
    receiver.connections = 2 * transfer_.connections;  // those that end beside those that begin
    receiver.half_open = transfer_.connections;
    receiver.ring_bytes = transfer_.ring_bytes;
    receiver.discards = !transfer_.place;
    receiver.populate_rings = transfer_.place;
    receiver.lane_acknowledges = transfer_.ack == ProcessorKind::gpu;
    WARPLINE_CHECK(draw_secret(receiver.secret));
    stream::SenderSettings sender;
    sender.connections = transfer_.connections;
    sender.window_bytes = std::min<std::uint64_t>(transfer_.ring_bytes, kWireBytes / transfer_.connections);
    WARPLINE_CHECK(draw_secret(sender.secret));
    WARPLINE_TRY(receiving_,
                 stream_port::StreamPort::open(receiving_port(number, transfer_.mtu), memory::PoolSettings{}, receiver,
                                               clock_.now(), std::nullopt, 1, 0, lanes));
    WARPLINE_TRY(const stream_port::PayloadSetup payload,
                 payload_of(transfer_.send_engine, transfer_.gpu, sender.window_bytes, source_.payload()));
    WARPLINE_TRY(sending_,
                 stream_port::SendPort::open(sending_port(number, transfer_.mtu), memory::PoolSettings{}, sender,
                                             source_, kReceiverAddress, clock_.now(), std::nullopt, 0, payload));
    return {};
  }

  void begin(bool receiver_gives_way, bool sender_gives_way, const std::atomic<bool>& stop_receiver,
             const std::atomic<bool>& stop_sender) {
    if (comparer_) {
      auto compared = std::make_unique<service::ComparedStreams>(2 * transfer_.connections, std::move(comparer_));
      compared_ = compared.get();
      application_ = std::move(compared);
    } else {
      if (transfer_.verify) check_.emplace(transfer_.seed);
      application_ = std::make_unique<service::StreamConsumer>(2 * transfer_.connections, transfer_.ring_bytes, nullptr,
                                                               check_ ? &*check_ : nullptr);
    }
    const stream_port::SendPlan plan{.peer = {kReceiverAddress, kListen},
                                     .connections = transfer_.connections,
                                     .bytes = transfer_.bytes,
                                     .chunk = transfer_.chunk,
                                     .ahead = 2 * transfer_.ring_bytes};
    receiver_.emplace(receiving_->queue(), *application_, clock_, stop_receiver, receiver_gives_way);
    sender_.emplace(sending_->queue(), source_, plan, clock_, stop_sender, sender_gives_way);
  }

  [[nodiscard]] stream_port::StreamWorker& receiver() { return *receiver_; }
  [[nodiscard]] stream_port::SendWorker& sender() { return *sender_; }

  void stop_lane() { receiving_->queue().close(); }

  /// Closes the ports, adds what was counted, and holds it against what was to be sent.
  Result<void> close(TransferFigures& figures, bool interrupted) {
    receiving_->close();
    sending_->close();
    const service::SendTotals sent = service::SendTotals::of(sending_->queue());
    const stream::ReceiverCounters& received = receiving_->queue().receiver().counters();
    const std::uint64_t bytes = received.bytes.get();
    figures.bytes += bytes;
    figures.segments += sent.segments;
    figures.retransmitted += sent.retransmitted;
    figures.acknowledgements += received.acknowledgements.get();
    figures.lane_acknowledgements += received.lane_acknowledgements.get();
    if (const std::uint32_t lost = receiving_->leaked() + sending_->leaked(); lost != 0) {
      return verification_error(fmt::format("{} packet buffers did not come back", lost));
    }
    if (receiver_->failure()) return *receiver_->failure();
    if (sender_->failure()) return *sender_->failure();
    if (compared_ != nullptr && compared_->failure()) return *compared_->failure();
    if (const std::uint64_t wrong = compared_ != nullptr ? compared_->wrong()
                                    : check_             ? check_->bad.get()
                                                         : 0;
        wrong != 0) {
      return verification_error(fmt::format("{} bytes or pieces of them are wrong", wrong));
    }
    if (interrupted) return {};
    if (sent.finished != transfer_.connections) {
      return Error{ErrorKind::peer, fmt::format("{} of {} connections finished", sent.finished, transfer_.connections),
                   fmt::format("{} were reset, {} timed out", sent.reset, sent.timed_out), "run it again"};
    }
    const std::uint64_t wanted = transfer_.bytes == 0 ? sent.bytes_sent : transfer_.connections * transfer_.bytes;
    if (bytes != wanted) return verification_error(fmt::format("{} of {} bytes arrived", bytes, wanted));
    const std::uint64_t checked = compared_ != nullptr ? compared_->checked() : check_ ? check_->checked.get() : 0;
    if (transfer_.verify && checked != wanted) {
      return verification_error(fmt::format("{} of {} bytes were compared", checked, wanted));
    }
    return {};
  }

 private:
  const Transfer& transfer_;
  const transport::NanoClock& clock_;
  service::SeededSource source_;
  std::unique_ptr<stream_port::SeededComparer> comparer_;  ///< until begin()
  std::optional<service::StreamCheck> check_;
  const service::ComparedStreams* compared_ = nullptr;  ///< `application_`, if it is one
  std::unique_ptr<stream_port::StreamApplication> application_;
  std::unique_ptr<stream_port::StreamPort> receiving_;
  std::unique_ptr<stream_port::SendPort> sending_;
  std::optional<stream_port::StreamWorker> receiver_;
  std::optional<stream_port::SendWorker> sender_;
};

class TransferRun {
 public:
  explicit TransferRun(const Transfer& transfer) : transfer_(transfer) {}

  Result<void> open() {
    WARPLINE_TRY(const stream_port::LaneSetup lanes, lanes_of(transfer_.engine, transfer_.gpu, transfer_.io));
    for (std::uint32_t i = 0; i < transfer_.pairs; ++i) {
      pairs_.push_back(std::make_unique<TransferPair>(transfer_, clock_));
      WARPLINE_CHECK(pairs_.back()->prepare());
    }
    for (std::uint32_t i = 0; i < transfer_.pairs; ++i) WARPLINE_CHECK(pairs_[i]->open(i, lanes));
    return {};
  }

  Result<TransferFigures> run(const runtime::LcorePlan& lcores, const std::atomic<bool>& stop) {
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      pairs_[i]->begin(lcores.workers[2 * i].gives_way, lcores.workers[2 * i + 1].gives_way, stop_receivers_,
                       stop_senders_);
    }
    {
      runtime::Workers workers(lcores);
      const Result<void> launched = launch(workers);
      const Nanos began = clock_.now();
      while (launched && !std::ranges::all_of(pairs_, [](auto& pair) { return pair->sender().done(); })) {
        const double passed = static_cast<double>(clock_.now().value - began.value) / 1e9;
        if (transfer_.bytes == 0 && passed >= transfer_.seconds) {
          for (auto& pair : pairs_) pair->sender().finish();
        }
        if (stop.load(std::memory_order_relaxed)) stop_senders_.store(true, std::memory_order_relaxed);
        std::this_thread::sleep_for(kLook);
      }
      stop_senders_.store(true, std::memory_order_relaxed);
      stop_receivers_.store(true, std::memory_order_relaxed);
      workers.wait();
      WARPLINE_CHECK(launched);
    }
    return figures(stop.load(std::memory_order_relaxed));
  }

 private:
  Result<void> launch(runtime::Workers& workers) {
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      WARPLINE_CHECK(workers.launch(2 * i, [&pair = *pairs_[i]] { pair.receiver().run(); }));
      WARPLINE_CHECK(workers.launch(2 * i + 1, [&pair = *pairs_[i]] { pair.sender().run(); }));
    }
    return {};
  }

  Result<TransferFigures> figures(bool interrupted) {
    TransferFigures figures;
    Histogram chunks;
    constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t first_byte = kNever, last_byte = 0, first_syn = kNever, last_acknowledgement = 0;
    for (auto& pair : pairs_) {
      if (pair->receiver().last_byte() != 0) first_byte = std::min(first_byte, pair->receiver().first_byte());
      last_byte = std::max(last_byte, pair->receiver().last_byte());
      first_syn = std::min(first_syn, pair->sender().first_syn());
      last_acknowledgement = std::max(last_acknowledgement, pair->sender().last_acknowledgement());
      chunks.merge(pair->sender().chunk_times());
    }
    if (last_byte != 0) figures.receiving_s = static_cast<double>(last_byte - first_byte) / 1e9;
    if (last_acknowledgement > first_syn) {
      figures.sending_s = static_cast<double>(last_acknowledgement - first_syn) / 1e9;
    }
    figures.chunks = LatencyTotals::of(chunks);
    // Beside a kernel that stays nothing can be freed.
    for (auto& pair : pairs_) pair->stop_lane();
    for (auto& pair : pairs_) WARPLINE_CHECK(pair->close(figures, interrupted));
    return figures;
  }

  const Transfer transfer_;
  transport::NanoClock clock_;
  std::atomic<bool> stop_senders_{false};
  std::atomic<bool> stop_receivers_{false};
  std::vector<std::unique_ptr<TransferPair>> pairs_;
};

}  // namespace

std::vector<runtime::WorkerRequest> transfer_workers(std::uint32_t pairs) {
  std::vector<runtime::WorkerRequest> requests;
  for (std::uint32_t i = 0; i < pairs; ++i) {
    const auto receiver = static_cast<int>(requests.size());
    requests.push_back({.name = fmt::format("receive {}", i), .queues = fmt::format("port {} queue 0", 2 * i)});
    requests.push_back(
        {.name = fmt::format("send {}", i), .queues = fmt::format("port {} queue 0", 2 * i + 1), .near = receiver});
  }
  return requests;
}

Result<Bytes> transfer_memory(std::uint32_t pairs, std::span<const EngineKind> engines, EngineKind send_engine,
                              int gpu) {
  const memory::PoolSettings pool;
  std::uint64_t receiving = 0;
  for (const EngineKind engine : engines) {
    WARPLINE_TRY(const stream_port::LaneSetup lanes, lanes_of(engine, gpu));
    receiving =
        std::max(receiving, stream_port::StreamPort::memory(receiving_port(0, kLargestMtu), pool, 1, lanes).value);
  }
  const stream::SeededPayload payload(0);
  WARPLINE_TRY(const stream_port::PayloadSetup sending, payload_of(send_engine, gpu, 0, payload));
  return Bytes{pairs * (receiving + stream_port::SendPort::memory(sending_port(0, kLargestMtu), pool, sending).value)};
}

Result<TransferFigures> run_transfer(const runtime::LcorePlan& lcores, const Transfer& transfer,
                                     const std::atomic<bool>& stop) {
  TransferRun run(transfer);
  WARPLINE_CHECK(run.open());
  return run.run(lcores, stop);
}

}  // namespace warpline::transfers
