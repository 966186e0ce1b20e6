// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

#include "sim/event_queue.h"
#include "sim/packet.h"
#include "warpline/base/random.h"
#include "warpline/base/statistics/histogram.h"

namespace warpline::sim {

struct PortSettings {
  double bits_per_second = 25e9;  ///< of layer 1
  std::int64_t delay = 1'000;     ///< nanoseconds to the far end of the link
  std::uint64_t capacity_bytes = 1 << 20;
  std::uint64_t mark_above_bytes = 0;           ///< longer queues mark Congestion Experienced; 0: none does
  std::uint32_t datagram_bytes = kMaxDatagram;  ///< longer ones vanish, and nobody is told
};

/// Probabilities of what a link does to a packet.
struct Faults {
  double loss = 0;
  double duplicate = 0;
  double corrupt = 0;
  double reorder = 0;           ///< delayed beyond its turn
  std::int64_t reorder_by = 0;  ///< nanoseconds at most
};

struct PortCounters {
  std::uint64_t sent_packets = 0;
  std::uint64_t sent_wire_bytes = 0;
  std::uint32_t longest_wire_bytes = 0;  ///< of one packet
  std::uint64_t dropped = 0;             ///< the queue was full
  std::uint64_t too_long = 0;
  std::uint64_t marked = 0;
  std::uint64_t lost = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t corrupted = 0;
  std::uint64_t reordered = 0;
};

/// Whoever feeds a port: learns when a packet leaves the queue for the wire.
class Departures {
 public:
  /// The last moment to write the packet's bytes.
  virtual void departing(Packet& packet) = 0;

 protected:
  ~Departures() = default;
};

/// A queue of finite length and the link behind it, with its faults.
class Port final : public Actor {
 public:
  Port(EventQueue& events, PacketPool& pool, const PortSettings& config, const Faults& faults, std::uint64_t seed)
      : events_(events), pool_(pool), config_(config), faults_(faults), random_(seed) {}

  void connect(PacketSink& sink) { sink_ = &sink; }
  void tell_departures(Departures& departures) { departures_ = &departures; }

  /// Queues the packet, or drops it.
  void offer(Packet* packet);
  /// Forgets the queue; what is on the wire arrives.
  void flush();

  void set_faults(const Faults& faults) { faults_ = faults; }
  void set_datagram_bytes(std::uint32_t bytes) { config_.datagram_bytes = bytes; }
  /// As if the first packet to leave from now on, of at least `length` bytes, were lost.
  void lose_next(std::uint32_t length) { lose_next_ = length; }

  [[nodiscard]] std::size_t queued_packets() const { return queue_.size(); }
  [[nodiscard]] std::uint64_t queued_bytes() const { return queued_bytes_; }
  [[nodiscard]] const PortCounters& counters() const { return counters_; }
  /// Nanoseconds that packets waited in the queue.
  [[nodiscard]] const Histogram& waits() const { return *waits_; }
  /// Counters and waits begin anew.
  void forget_statistics();

  void act(std::uint64_t what) override;

 private:
  void transmit_next();
  void put_on_wire(Packet* packet, std::int64_t arrives);
  void corrupt(Packet& packet);

  EventQueue& events_;
  PacketPool& pool_;
  PortSettings config_;
  Faults faults_;
  Random random_;
  PacketSink* sink_ = nullptr;
  Departures* departures_ = nullptr;

  std::deque<Packet*> queue_;
  std::uint64_t queued_bytes_ = 0;
  double free_at_ = 0;  ///< nanoseconds; the sub-nanosecond part keeps the rate exact
  bool busy_ = false;
  std::uint32_t lose_next_ = 0;
  PortCounters counters_;
  std::unique_ptr<Histogram> waits_ = std::make_unique<Histogram>();
};

}  // namespace warpline::sim
