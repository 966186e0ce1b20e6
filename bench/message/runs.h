// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "warpline/message/config.h"
#include "warpline/runtime/lcore_plan.h"
#include "warpline/transport/ethdev/message_port.h"

namespace warpline {

/// The two lcores of every contender: one serves, one asks.
struct BenchLcores {
  const runtime::LcorePlan& plan;
  double warmup_s = 0.1;
  double measured_s = 0.4;
};

/// Runs `server` and `client`, each on its lcore, until both return; `sample` is called by this thread after the
/// warm-up and after the measured time, then `stop`.
void run_both(const BenchLcores& lcores, const std::function<void()>& server, const std::function<void()>& client,
              const std::function<void(bool end)>& sample, const std::function<void()>& stop);

/// What one run found. What does not apply is 0.
struct RunFigures {
  double per_second = 0;  ///< requests
  double gbps = 0;        ///< payload, one way
  double p50_ns = 0;
  double p99_ns = 0;
};

/// A pair of ports with a wire between them.
struct BenchWire {
  std::unique_ptr<transport::MessagePort> server;
  std::unique_ptr<transport::MessagePort> client;
  std::span<std::uint8_t> memory;  ///< for messages from the client: the port may read it
  std::uint32_t datagram_bytes = 0;
};
inline constexpr std::uint32_t kLongMessage = 8 << 20;

/// The longest frames of an MTU, and what they carry.
struct FullFrame {
  std::uint16_t mtu;
  [[nodiscard]] constexpr std::uint32_t bytes() const { return mtu + 14U; }
  [[nodiscard]] constexpr std::uint32_t datagram() const { return mtu - 20U - 8U; }
  [[nodiscard]] constexpr std::uint32_t payload() const { return datagram() - 28 - 20; }  ///< of a message
};
inline constexpr FullFrame kOrdinary{1500};
inline constexpr FullFrame kJumbo{9000};

/// `spec`: "vnic" or "ring"; `number` makes names unique; descriptors that are reported together: as messages want it.
Result<BenchWire> make_wire(const std::string& spec, unsigned number, bool udp_checksum,
                            std::optional<std::uint16_t> tx_rs_thresh = {}, FullFrame frame = kOrdinary);

struct MessageRun {
  message::CcKind cc = message::CcKind::swift;
  message::Reliability reliability = message::Reliability::selective;
  std::uint32_t length = 32;
  std::uint32_t outstanding = 64;
  bool echo = true;  ///< else the response is empty
  std::uint32_t sessions = 1;
  bool bundles = true;                                  ///< else each message has a packet of its own
  std::uint32_t datagram_bytes = kOrdinary.datagram();  ///< no more than the wire's
  bool encrypted = false;                               ///< of run_messages(): by AES-128-GCM
};
RunFigures run_messages(const BenchLcores& lcores, BenchWire& wire, const MessageRun& run);
/// `outstanding` in all, each in the next session's turn.
RunFigures run_rotating(const BenchLcores& lcores, BenchWire& wire, const MessageRun& run);
/// The same over sockets of the kernel.
RunFigures run_messages_on_sockets(const BenchLcores& lcores, const MessageRun& run);

/// Seals packets of `payload` bytes, in the cache, on both lcores, and does nothing else: what the cipher allows an
/// end.
RunFigures run_sealing(const BenchLcores& lcores, std::uint32_t payload);

/// rte_eth bursts over a vnic pair without a protocol: an echo of `frame` bytes, `outstanding` at once, or one way; the
/// bytes come from and, one way, go to memory of an application of 8 MiB.
RunFigures run_raw_echo(const BenchLcores& lcores, BenchWire& wire, std::uint32_t frame, std::uint32_t outstanding);
RunFigures run_raw_stream(const BenchLcores& lcores, BenchWire& wire, std::uint32_t frame, std::uint32_t payload);

/// The kernel's UDP on loopback, spinning: echoes with sendmmsg and recvmmsg, and a stream in segments (UDP_SEGMENT,
/// UDP_GRO).
RunFigures run_udp_echo(const BenchLcores& lcores, std::uint32_t length, std::uint32_t outstanding);
RunFigures run_udp_stream(const BenchLcores& lcores, std::uint32_t datagram);
/// The kernel's TCP on loopback, spinning, all that is there with each call.
RunFigures run_tcp_echo(const BenchLcores& lcores, std::uint32_t length, std::uint32_t outstanding);
RunFigures run_tcp_stream(const BenchLcores& lcores);

}  // namespace warpline
