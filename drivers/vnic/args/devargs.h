// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "vnic/faults/faults.h"
#include "vnic/personas/persona.h"

namespace warpline::vnic {

enum class WireKind : std::uint8_t {
  loopback,  ///< what is sent comes back
  peer,      ///< another port of this process, by name
  source,    ///< frames are made, or replayed from a file; what is sent is swallowed
  sink,      ///< what is sent is swallowed, nothing comes
  fixed,     ///< `static`: endless frames and completions, payload never touched, for measuring the driver alone
};

enum class EngineKind : std::uint8_t { inline_, thread };

/// Where the address of a buffer to be posted comes from.
enum class Refill : std::uint8_t {
  computed,  ///< from the mbuf's own address, where all buffers of a pool lie equally far from their mbufs
  mbuf,      ///< read there, as drivers of hardware do
  ring,      ///< of recycled buffers: from the transmit ring, which keeps it; of others: read from the mbuf
};

/// A port's device arguments, `net_vnic0,wire=loopback,loss=0.01,seed=7`.
struct Devargs {
  Devargs() : Devargs(*find_persona("")) {}
  /// What a port of that persona is without further arguments.
  explicit Devargs(const Persona& whose);

  const Persona* persona;  ///< never null
  WireKind wire = WireKind::loopback;
  std::string peer;  ///< name of the port at the other end
  EngineKind engine = EngineKind::inline_;
  int engine_cpu = -1;       ///< `cpu=`: of the engine's thread; -1: anywhere
  std::uint32_t size = 64;   ///< of made frames, bytes without FCS
  std::uint32_t flows = 64;  ///< of made frames
  double packets_per_s = 0;  ///< of made frames and static ones; 0: as fast as asked for
  double step = 1;           ///< times that rate, from `step_nanos` after the first frame on
  double step_nanos = 0;
  std::string pcap;                ///< replayed instead of made frames
  std::uint32_t buffer = 1 << 20;  ///< bytes of a queue's packet buffer
  std::uint16_t rx_queues;         ///< most that the port offers
  std::uint16_t tx_queues;         ///< likewise
  bool fast_free;                  ///< offer the offload
  Refill refill = Refill::computed;
  std::uint16_t rx_align;        ///< receive calls round what they are asked for down to a multiple, a power of two
  std::uint16_t rx_buffer_unit;  ///< bytes that a receive buffer's room is counted in, a power of two
  std::uint32_t link_up_after;   ///< looks at the link after a start that find it down
  PayloadRead reads_sent;        ///< payload that the driver reads with the CPU
  std::uint64_t seed = 1;
  FaultConfig faults;

  [[nodiscard]] std::uint16_t most_queues() const { return std::max(rx_queues, tx_queues); }

  static constexpr std::uint32_t kMinSize = 60;  ///< of made frames
  static constexpr std::uint32_t kMaxSize = 9022;
  static constexpr std::uint32_t kMaxFlows = 1 << 17;
  static constexpr std::uint32_t kMinBuffer = 1 << 15;
  static constexpr std::uint16_t kMaxRxAlign = 32;
  static constexpr std::uint16_t kMaxBufferUnit = 1024;
};

/// Reads what follows the name in a vdev string. Negative errno, after one log line that says what is wrong and which
/// keys or values there are. Never crashes on any text.
[[nodiscard]] int parse_devargs(const char* text, Devargs& args);

}  // namespace warpline::vnic
