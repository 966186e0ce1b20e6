// SPDX-License-Identifier: Apache-2.0
#include "transfers/transfer.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "warpline/memory/pool_settings.h"
#include "warpline/port/port_settings.h"
#include "warpline/runtime/workers.h"
#include "warpline/service/streams/send_report.h"
#include "warpline/service/streams/send_worker.h"
#include "warpline/service/streams/stream_consumer.h"
#include "warpline/service/streams/stream_report.h"
#include "warpline/service/streams/stream_worker.h"
#include "warpline/stream_port/send_port.h"
#include "warpline/stream_port/stream_port.h"
#include "warpline/transport/nano_clock.h"

namespace warpline::transfers {
namespace {

constexpr std::uint16_t kListen = 5001;
constexpr std::uint16_t kLargestMtu = 9000;
constexpr auto kLook = std::chrono::milliseconds(1);
constexpr Ipv4Address kReceiverAddress{{10, 9, 0, 2}};
constexpr Ipv4Address kSenderAddress{{10, 9, 0, 1}};

/// The receiving port is number 0, the sending one number 1.
port::PortSettings port_settings(unsigned number, const Ipv4Address& address, std::uint16_t mtu) {
  port::PortSettings port;
  // A wire that holds what all windows together let be on their way: with the default of 1 MiB frames are lost to it.
  port.spec = fmt::format("net_vnic{},wire=net_vnic{},buffer=16Mi", number, 1 - number);
  port.mtu = mtu;
  port.addresses = {{address, 24}};
  return port;
}

Result<void> draw_secret(std::array<std::uint8_t, 16>& secret) {
  if (::getrandom(secret.data(), secret.size(), 0) == static_cast<ssize_t>(secret.size())) return {};
  return environment_error("cannot make a secret", "the kernel gives no random numbers", "check `man getrandom`");
}

/// Members are destroyed in reverse: ports close before what they send.
class TransferRun {
 public:
  explicit TransferRun(const Transfer& transfer)
      : transfer_(transfer), source_(transfer.seed, transfer.connections), check_(transfer.seed) {}

  Result<void> open() {
    stream::ReceiverSettings receiver;
    receiver.ports = {kListen};
    receiver.connections = 2 * transfer_.connections;  // those that end beside those that begin
    receiver.half_open = transfer_.connections;
    receiver.ring_bytes = transfer_.ring_bytes;
    receiver.populate_rings = true;
    WARPLINE_CHECK(draw_secret(receiver.secret));
    stream::SenderSettings sender;
    sender.connections = transfer_.connections;
    sender.window_bytes = transfer_.ring_bytes;
    WARPLINE_CHECK(draw_secret(sender.secret));
    WARPLINE_TRY(receiving_, stream_port::StreamPort::open(port_settings(0, kReceiverAddress, transfer_.mtu),
                                                           memory::PoolSettings{}, receiver, clock_.now()));
    WARPLINE_TRY(sending_,
                 stream_port::SendPort::open(port_settings(1, kSenderAddress, transfer_.mtu), memory::PoolSettings{},
                                             sender, source_, kReceiverAddress, clock_.now()));
    return {};
  }

  Result<TransferFigures> run(const runtime::LcorePlan& lcores, const std::atomic<bool>& stop) {
    service::StreamConsumer consumer(2 * transfer_.connections, transfer_.ring_bytes, nullptr,
                                     transfer_.verify ? &check_ : nullptr);
    const service::SendPlan plan{.peer = {kReceiverAddress, kListen},
                                 .connections = transfer_.connections,
                                 .bytes = transfer_.bytes,
                                 .chunk = transfer_.chunk,
                                 .ahead = 2 * transfer_.ring_bytes};
    service::StreamWorker receiver(receiving_->queue(), consumer, clock_, stop_receiver_, lcores.workers[0].gives_way);
    service::SendWorker sender(sending_->queue(), source_, plan, clock_, stop_sender_, lcores.workers[1].gives_way);
    {
      runtime::Workers workers(lcores);
      WARPLINE_CHECK(workers.launch(0, [&] { receiver.run(); }));
      const Result<void> launched = workers.launch(1, [&] { sender.run(); });
      const Nanos began = clock_.now();
      while (launched && !sender.done()) {
        const double passed = static_cast<double>(clock_.now().value - began.value) / 1e9;
        if (transfer_.bytes == 0 && passed >= transfer_.seconds) sender.finish();
        if (stop.load(std::memory_order_relaxed)) stop_sender_.store(true, std::memory_order_relaxed);
        std::this_thread::sleep_for(kLook);
      }
      stop_receiver_.store(true, std::memory_order_relaxed);
      workers.wait();
      WARPLINE_CHECK(launched);
    }
    TransferFigures figures;
    if (receiver.last_byte() != 0) {
      figures.receiving_s = static_cast<double>(receiver.last_byte() - receiver.first_byte()) / 1e9;
    }
    figures.sending_s = sender.sending_s();
    figures.chunks = LatencyTotals::of(sender.chunk_times());
    const bool interrupted = stop.load(std::memory_order_relaxed);
    WARPLINE_CHECK(close(figures, interrupted));
    return figures;
  }

 private:
  /// Holds what was counted against what was to be sent.
  Result<void> close(TransferFigures& figures, bool interrupted) {
    receiving_->close();
    sending_->close();
    const service::SendTotals sent = service::SendTotals::of(sending_->queue());
    const stream::ReceiverCounters& received = receiving_->queue().receiver().counters();
    figures.bytes = received.bytes.get();
    figures.segments = sent.segments;
    figures.retransmitted = sent.retransmitted;
    figures.acknowledgements = received.acknowledgements.get();
    if (const std::uint32_t lost = receiving_->leaked() + sending_->leaked(); lost != 0) {
      return verification_error(fmt::format("{} packet buffers did not come back", lost));
    }
    if (check_.bad.get() != 0) return verification_error(fmt::format("{} pieces of bytes are wrong", check_.bad.get()));
    if (interrupted) return {};
    if (sent.finished != transfer_.connections) {
      return Error{ErrorKind::peer, fmt::format("{} of {} connections finished", sent.finished, transfer_.connections),
                   fmt::format("{} were reset, {} timed out", sent.reset, sent.timed_out), "run it again"};
    }
    const std::uint64_t wanted = transfer_.bytes == 0 ? sent.bytes_sent : transfer_.connections * transfer_.bytes;
    if (figures.bytes != wanted) {
      return verification_error(fmt::format("{} of {} bytes arrived", figures.bytes, wanted));
    }
    if (transfer_.verify && check_.checked.get() != wanted) {
      return verification_error(fmt::format("{} of {} bytes were compared", check_.checked.get(), wanted));
    }
    return {};
  }

  static Error verification_error(std::string what) {
    return Error{ErrorKind::verification, std::move(what), "receiver and sender do not agree", "report it"};
  }

  const Transfer transfer_;
  transport::NanoClock clock_;
  service::SeededSource source_;
  service::StreamCheck check_;
  std::atomic<bool> stop_sender_{false};
  std::atomic<bool> stop_receiver_{false};
  std::unique_ptr<stream_port::StreamPort> receiving_;
  std::unique_ptr<stream_port::SendPort> sending_;
};

}  // namespace

std::vector<runtime::WorkerRequest> transfer_workers() {
  return {{.name = "receive", .queues = "port 0 queue 0"}, {.name = "send", .queues = "port 1 queue 0", .near = 0}};
}

Bytes transfer_memory() {
  const memory::PoolSettings pool;
  const auto of = [](unsigned number, const Ipv4Address& address) {
    return port_settings(number, address, kLargestMtu);
  };
  return Bytes{stream_port::StreamPort::memory(of(0, kReceiverAddress), pool).value +
               stream_port::SendPort::memory(of(1, kSenderAddress), pool).value};
}

Result<TransferFigures> run_transfer(const runtime::LcorePlan& lcores, const Transfer& transfer,
                                     const std::atomic<bool>& stop) {
  TransferRun run(transfer);
  WARPLINE_CHECK(run.open());
  return run.run(lcores, stop);
}

}  // namespace warpline::transfers
