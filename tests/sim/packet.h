// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "warpline/base/units.h"
#include "warpline/message/types.h"

namespace warpline::sim {

inline constexpr std::uint32_t kMaxDatagram = 9216;

/// What a packet takes on the link beyond its UDP payload: UDP 8, IPv4 20, Ethernet 14, layer 1 24.
inline constexpr std::uint32_t kWireOverhead = 66;

struct Packet {
  std::array<std::uint8_t, kMaxDatagram> bytes;
  std::uint32_t length = 0;  ///< UDP payload

  // While the payload waits in the sender's memory.
  const std::uint8_t* payload = nullptr;
  std::uint32_t payload_length = 0;
  std::uint64_t token = 0;

  std::uint32_t from = 0;            ///< host
  message::PeerAddress source;       ///< of that host, when it was sent
  message::PeerAddress destination;  ///< of the other, as the sender has it
  std::uint32_t to = 0;              ///< host
  std::uint8_t ecn = 0;
  bool damaged = false;      ///< on the way: what UDP's checksum finds out
  bool unreachable = false;  ///< it has come back, as ICMP: nobody was there
  std::int64_t queued_at = 0;
  Nanos arrived;  ///< by the receiving host's clock

  [[nodiscard]] std::uint32_t wire_bytes() const { return length + kWireOverhead; }
};

/// Packets are recycled; whoever holds one gives it back.
class PacketPool {
 public:
  Packet* take() {
    ++taken_;
    if (free_.empty()) {
      all_.push_back(std::make_unique_for_overwrite<Packet>());
      return all_.back().get();
    }
    Packet* packet = free_.back();
    free_.pop_back();
    return packet;
  }
  void give(Packet* packet) {
    --taken_;
    free_.push_back(packet);
  }
  [[nodiscard]] std::size_t taken() const { return taken_; }

 private:
  std::vector<std::unique_ptr<Packet>> all_;
  std::vector<Packet*> free_;
  std::size_t taken_ = 0;
};

class PacketSink {
 public:
  /// Takes the packet over.
  virtual void arrive(Packet* packet) = 0;

 protected:
  ~PacketSink() = default;
};

}  // namespace warpline::sim
