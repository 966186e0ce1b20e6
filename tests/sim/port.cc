// SPDX-License-Identifier: Apache-2.0
#include "sim/port.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "sim/chance.h"

namespace warpline::sim {
namespace {

constexpr std::uint64_t kTransmitted = 0;  // any other event is a packet that arrives
constexpr std::uint8_t kCongestionExperienced = 3;

}  // namespace

void Port::offer(Packet* packet) {
  if (packet->length > config_.datagram_bytes) {
    ++counters_.too_long;
    pool_.give(packet);
    return;
  }
  if (queued_bytes_ + packet->wire_bytes() > config_.capacity_bytes) {
    ++counters_.dropped;
    pool_.give(packet);
    return;
  }
  if (config_.mark_above_bytes != 0 && queued_bytes_ > config_.mark_above_bytes && packet->ecn != 0) {
    packet->ecn = kCongestionExperienced;
    ++counters_.marked;
  }
  packet->queued_at = events_.now();
  queued_bytes_ += packet->wire_bytes();
  queue_.push_back(packet);
  if (!busy_) transmit_next();
}

void Port::flush() {
  for (Packet* packet : queue_) pool_.give(packet);
  queue_.clear();
  queued_bytes_ = 0;
}

void Port::forget_statistics() {
  counters_ = {};
  waits_ = std::make_unique<Histogram>();
}

void Port::act(std::uint64_t what) {
  if (what != kTransmitted) return sink_->arrive(std::bit_cast<Packet*>(what));
  busy_ = false;
  if (!queue_.empty()) transmit_next();
}

void Port::transmit_next() {
  Packet* packet = queue_.front();
  queue_.pop_front();
  queued_bytes_ -= packet->wire_bytes();
  waits_->record(static_cast<std::uint64_t>(events_.now() - packet->queued_at));
  const std::uint32_t wire_bytes = packet->wire_bytes();
  ++counters_.sent_packets;
  counters_.sent_wire_bytes += wire_bytes;
  counters_.longest_wire_bytes = std::max(counters_.longest_wire_bytes, wire_bytes);
  busy_ = true;
  const auto now = static_cast<double>(events_.now());
  if (now > free_at_ + 1) free_at_ = now;  // it was idle; otherwise the event came at the whole nanosecond
  free_at_ += 8e9 * wire_bytes / config_.bits_per_second;
  const auto free_at = static_cast<std::int64_t>(std::llround(free_at_));
  events_.at(free_at, *this, kTransmitted);
  if (departures_ != nullptr) departures_->departing(*packet);
  put_on_wire(packet, free_at + config_.delay);
}

void Port::put_on_wire(Packet* packet, std::int64_t arrives) {
  const bool chosen = lose_next_ != 0 && packet->length >= lose_next_;
  if (chosen) lose_next_ = 0;
  if (chosen || chance(random_, faults_.loss)) {
    ++counters_.lost;
    pool_.give(packet);
    return;
  }
  if (chance(random_, faults_.duplicate)) {
    ++counters_.duplicated;
    Packet* copy = pool_.take();
    *copy = *packet;
    events_.at(arrives + between(random_, 0, std::max<std::int64_t>(faults_.reorder_by, 1'000)), *this,
               std::bit_cast<std::uint64_t>(copy));
  }
  if (chance(random_, faults_.corrupt)) corrupt(*packet);
  if (chance(random_, faults_.reorder)) {
    ++counters_.reordered;
    arrives += between(random_, 0, faults_.reorder_by);
  }
  events_.at(arrives, *this, std::bit_cast<std::uint64_t>(packet));
}

/// One bit, or bytes at random from some place on, or an end cut off.
void Port::corrupt(Packet& packet) {
  ++counters_.corrupted;
  packet.damaged = true;
  if (packet.length == 0) return;
  const auto at = static_cast<std::uint32_t>(random_.below(packet.length));
  switch (random_.below(4)) {
    case 0: {
      const auto count = static_cast<std::uint32_t>(random_.below(packet.length - at) + 1);
      for (std::uint32_t i = 0; i < count; ++i) packet.bytes[at + i] = static_cast<std::uint8_t>(random_.next());
      break;
    }
    case 1:
      packet.length = at;
      break;
    default:
      packet.bytes[at] ^= static_cast<std::uint8_t>(1U << random_.below(8));
  }
}

}  // namespace warpline::sim
