// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lanes with traffic of many connections, and what a host makes of the same: for the tests of host and GPU.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "warpline/base/random.h"
#include "warpline/packet/tcp_frame.h"
#include "warpline/stream/internal/lane_layout.h"
#include "warpline/stream/internal/lanes/host_lane.h"

namespace warpline::stream::testing {

/// Makes zeroed memory that host and lane reach.
using LaneMemorySource = std::function<std::shared_ptr<std::byte>(std::size_t)>;

/// Memory of the host alone.
inline std::shared_ptr<std::byte> zeroed(std::size_t size) {
  return {new std::byte[size](), [](const std::byte* data) { delete[] data; }};
}

inline constexpr MacAddress kLaneMac{{2, 0, 0, 0, 0, 1}};

/// A lane with its memory, and the orders that a host gives it. Its rings are mapped once: what goes around a ring's
/// end lies behind it.
class TestLane {
 public:
  TestLane(const LaneShape& shape, const LaneMemorySource& shared, const LaneMemorySource& own, bool discards = false)
      : shape_(shape),
        layout_(shape),
        shared_(shared(layout_.shared_bytes())),
        own_(own(layout_.own_bytes())),
        rings_(own(rings_bytes())),
        view_(layout_.view(shared_.get(), own_.get(), reinterpret_cast<std::uint8_t*>(rings_.get()),
                           {.own = {.mac = kLaneMac, .timestamp_base = 5, .opening = 100},
                            .secret = 99,
                            .acknowledges = true,
                            .discards = discards})) {
    std::fill_n(view_.places, places_of(shape), KeyPlaces::kNone);
  }

  [[nodiscard]] const LaneView& view() const { return view_; }
  [[nodiscard]] BurstSlot slot(std::uint64_t sequence) const { return SlotLayout(shape_).slot(view_.slots, sequence); }
  [[nodiscard]] std::size_t rings_bytes() const { return 2 * shape_.ring_bytes * shape_.connections; }
  [[nodiscard]] std::span<const std::byte> rings() const { return {rings_.get(), rings_bytes()}; }
  void make_ready(std::uint64_t sequence, std::uint32_t count) {
    view_.ready[sequence & (shape_.slots - 1)].value = sequence << 32 | count;
  }

 private:
  LaneShape shape_;
  LaneLayout layout_;
  std::shared_ptr<std::byte> shared_;
  std::shared_ptr<std::byte> own_;
  std::shared_ptr<std::byte> rings_;
  LaneView view_;
};

/// Writes a frame of 10.0.0.2 to 10.0.0.1 with these bytes of payload, which lie there already. Returns its length.
inline std::uint32_t emit_segment(std::uint8_t* at, packet::TcpFrame& frame, std::uint32_t length) {
  frame.destination_mac = kLaneMac;
  frame.source_mac = {{2, 0, 0, 0, 0, 2}};
  frame.source = Ipv4Address{{10, 0, 0, 2}};
  frame.destination = Ipv4Address{{10, 0, 0, 1}};
  frame.tcp.destination_port = 5001;
  frame.tcp.window = 0xffff;
  const std::uint32_t headers = packet::tcp_headers_length(frame);
  packet::ChecksumSum sum;
  sum.add(at + headers, length);
  static_cast<void>(packet::emit(frame, {at, headers + length}, length, sum));
  return headers + length;
}

/// Returns the ends of what emit_segment() writes.
inline ConnectionKey key_of_peer(std::uint16_t port) {
  ConnectionKey key;
  key.local[1] = kMappedIpv4 | 0x0a00'0001;
  key.remote[1] = kMappedIpv4 | 0x0a00'0002;
  key.local_port = 5001;
  key.remote_port = port;
  return key;
}

/// The same order for another lane.
inline void copy_order(const BurstSlot& from, const BurstSlot& to, std::uint32_t count) {
  *to.order = *from.order;
  std::copy_n(from.changes, from.order->changes, to.changes);
  std::copy_n(from.tells, from.order->tells, to.tells);
  std::copy_n(from.segments, count, to.segments);
  std::copy_n(from.checksums_right, (count + 31) / 32, to.checksums_right);
}

/// A peer of a connection: what it sends next, and what of it was refused or lost and is sent again.
struct LanePeer {
  std::uint32_t generation = 0;
  std::uint16_t port = 0;
  std::uint32_t initial = 0;
  std::uint32_t timestamp = 0;
  bool timestamps = false;
  std::uint64_t next = 0;      ///< of the stream: what it sends next
  std::uint64_t arrived = 0;   ///< the lane's `next`, as the last record had it
  std::uint64_t released = 0;  ///< bytes that were read
  std::uint64_t end = 0;       ///< where its FIN is
};

/// How bad the network is, in 1/1000.
struct LaneFaults {
  std::uint64_t lost = 0, swapped = 0, again = 0, odd = 0;
};

inline LaneFaults random_faults(Random& random) {
  return {random.below(2) * random.below(300), random.below(2) * random.below(300), random.below(2) * random.below(300),
          random.below(2) * random.below(200)};
}

/// Makes bursts for two lanes of the same shape: the frames are the same, in memory that both reach.
class LaneTraffic {
 public:
  LaneTraffic(const LaneShape& shape, std::uint64_t seed, const LaneFaults& faults, std::uint32_t longest,
              const LaneMemorySource& memory)
      : shape_(shape),
        random_(seed),
        faults_(faults),
        longest_(longest),
        memory_(memory(kBytes)),
        peers_(shape.connections) {
    for (std::uint32_t i = 0; i < shape.connections; ++i) renew(i);
  }

  /// Fills the slots of both lanes in; returns the number of descriptors.
  std::uint32_t fill(const BurstSlot& a, const BurstSlot& b) {
    used_ = 0;
    count_ = 0;
    a_ = a;
    now_.value += 1'000'000;
    if (random_.below(200) == 0) now_.value += 25LL * 24 * 3600 * 1'000'000'000;
    BurstOrder order{now_, 0, 0};
    for (; !new_ones_.empty() && order.changes < shape_.changes; new_ones_.pop_back()) {
      a.changes[order.changes++] = change_of(new_ones_.back());
    }
    for (std::uint32_t i = 0; i < shape_.connections; ++i) {
      LanePeer& peer = peers_[i];
      if (random_.below(3) == 0) continue;
      peer.released += random_.below(peer.arrived - peer.released + 1);
      const std::uint64_t window_end = peer.released + shape_.ring_bytes;
      a.tells[order.tells++] = {i, peer.generation, window_end, random_.below(2) == 0 ? peer.arrived : 0,
                                random_.below(2) == 0 ? window_end : 0};
    }
    *a.order = order;
    std::memset(a.checksums_right, 0, (shape_.burst + 31) / 32 * 4);
    const std::uint32_t wanted = static_cast<std::uint32_t>(1 + random_.below(shape_.burst));
    for (std::uint32_t tries = 0; tries < 4 * wanted && count_ + 4 < wanted && used_ + 4096 < kBytes; ++tries) send();
    if (count_ == 0) send_odd(0);
    copy_order(a, b, count_);
    return count_;
  }

  /// Learns what the lane said.
  void learn(const BurstSlot& slot) {
    for (std::uint32_t i = 0; i < slot.result->records; ++i) {
      const ConnectionRecord& record = slot.records[i];
      LanePeer& peer = peers_[record.connection];
      if (peer.generation != record.generation) continue;
      peer.arrived = record.state.next;
      if (record.state.ranges.count() != 0 && random_.below(2) == 0) peer.next = peer.arrived;  // sends it again
      if (record.state.end_reached && random_.below(3) == 0) {
        ++ended_;
        renew(record.connection);
      }
    }
  }

  [[nodiscard]] std::uint64_t ended() const { return ended_; }

 private:
  static constexpr std::size_t kBytes = 4 << 20;

  void renew(std::uint32_t i) {
    LanePeer& peer = peers_[i];
    peer = {.generation = peer.generation + 1};
    peer.port = static_cast<std::uint16_t>(1000 + i + 5000 * (peer.generation % 8));
    peer.initial = static_cast<std::uint32_t>(random_.next() | 0xffff'0000U);  // wraps around soon
    peer.timestamps = random_.below(3) != 0;
    peer.timestamp = static_cast<std::uint32_t>(random_.next());
    peer.end = random_.below(2) == 0 ? 1 + random_.below(40) * shape_.ring_bytes / 7 : ReceiveState::kNoEnd;
    new_ones_.push_back(i);
  }

  [[nodiscard]] ConnectionChange change_of(std::uint32_t i) const {
    const LanePeer& peer = peers_[i];
    ConnectionChange change;
    change.connection = i;
    change.generation = peer.generation;
    change.add = true;
    change.timestamps = peer.timestamps;
    change.timestamp = peer.timestamp;
    change.initial = peer.initial;
    change.acknowledgement = 77;
    change.window_end = shape_.ring_bytes;
    change.last_heard = now_;
    change.key = key_of_peer(peer.port);
    change.peer = {.mac = {{2, 0, 0, 0, 0, 2}},
                   .selective = peer.generation % 3 != 0,
                   .scale = static_cast<std::uint8_t>(peer.generation % 5),
                   .sequence = 78,
                   .announced = shape_.ring_bytes / 2};
    return change;
  }

  void send() {
    const auto index = static_cast<std::uint32_t>(random_.below(shape_.connections));
    LanePeer& peer = peers_[index];
    for (std::uint64_t train = 1 + random_.below(12); train != 0 && count_ + 4 < shape_.burst; --train) {
      const std::uint64_t fate = random_.below(1000);
      if (fate < faults_.odd) {
        send_odd(index);
        continue;
      }
      std::uint64_t begin = peer.next;
      const std::uint64_t most = peer.arrived + shape_.ring_bytes + (random_.below(20) == 0 ? 100 : 0);
      if (begin >= most && random_.below(8) != 0) return;
      const auto length = static_cast<std::uint32_t>(
          std::min<std::uint64_t>({1 + random_.below(longest_), most > begin ? most - begin : 1, peer.end - begin}));
      const bool fin = begin + length == peer.end;
      peer.next = begin + length;
      if (random_.below(1000) < faults_.lost) continue;
      if (random_.below(1000) < faults_.again) begin -= random_.below(std::min<std::uint64_t>(begin, 300) + 1);
      emit(peer, begin, length, fin ? packet::kTcpFin | packet::kTcpAck : packet::kTcpAck);
      if (random_.below(1000) < faults_.swapped && count_ >= 2 && a_.segments[count_ - 2].more == 0 &&
          a_.segments[count_ - 1].more == 0 && (count_ == 2 || a_.segments[count_ - 3].more == 0)) {
        std::swap(a_.segments[count_ - 1], a_.segments[count_ - 2]);
        const bool last = right(count_ - 1);
        set_right(count_ - 1, right(count_ - 2));
        set_right(count_ - 2, last);
      }
    }
  }

  /// What is no segment with bytes of a connection, or one that must be refused.
  void send_odd(std::uint32_t index) {
    LanePeer peer = peers_[index];
    const std::uint64_t kind = random_.below(9);
    switch (kind) {
      case 0:
        peer.port = 7;
        break;
      case 1:
        peer.timestamp -= 10'000;
        break;
      case 2:
        peer.timestamps = !peer.timestamps;
        break;
      default:
        break;
    }
    const std::uint8_t flags = kind == 3   ? packet::kTcpRst
                               : kind == 4 ? packet::kTcpSyn
                               : kind == 5 ? 0
                                           : packet::kTcpAck;
    odd_acknowledgement_ = kind == 6;
    const std::uint32_t begin = count_;
    emit(peer, peer.next + random_.below(shape_.ring_bytes), static_cast<std::uint32_t>(random_.below(longest_)),
         flags);
    odd_acknowledgement_ = false;
    if (kind == 7) {
      a_.segments[begin].data[random_.below(a_.segments[begin].length)] ^= 0x10;
      set_right(begin, false);
    }
    if (kind == 8 && a_.segments[begin].more == 0) {
      a_.segments[begin].length = static_cast<std::uint32_t>(1 + random_.below(a_.segments[begin].length));
    }
  }

  void emit(LanePeer& peer, std::uint64_t begin, std::uint32_t length, std::uint8_t flags) {
    packet::TcpFrame frame;
    frame.tcp.source_port = peer.port;
    frame.tcp.sequence = sequence_of(begin, peer.initial);
    frame.tcp.flags = flags;
    frame.tcp.acknowledgement = odd_acknowledgement_ ? 99 : 77;
    if (random_.below(10) == 0) frame.tcp.flags |= packet::kTcpPsh;
    if (random_.below(100) == 0) {
      frame.tcp.flags |= packet::kTcpUrg;
      frame.tcp.urgent = static_cast<std::uint16_t>(random_.below(200));
    }
    if (peer.timestamps) {
      std::uint8_t* const options = frame.tcp.options;
      options[0] = options[1] = packet::kTcpOptionNop;
      options[2] = packet::kTcpOptionTimestamps;
      options[3] = 10;
      packet::store_be32(options + 4, peer.timestamp += static_cast<std::uint32_t>(random_.below(2)));
      packet::store_be32(options + 8, 0);
      frame.tcp.options_length = 12;
    }
    used_ += random_.below(40);  // at any place
    auto* const at = reinterpret_cast<std::uint8_t*>(memory_.get() + used_);
    const std::uint32_t headers = packet::tcp_headers_length(frame);
    for (std::uint32_t i = 0; i < length; ++i) at[headers + i] = static_cast<std::uint8_t>(random_.next());
    const std::uint32_t all = emit_segment(at, frame, length);
    used_ += all;
    append(at, all);
  }

  /// Now and then cut in two or three.
  void append(std::uint8_t* at, std::uint32_t length) {
    const bool right = random_.below(4) != 0;
    set_right(count_, right);
    std::uint32_t pieces = random_.below(10) == 0 ? static_cast<std::uint32_t>(2 + random_.below(2)) : 1;
    while (pieces != 0) {
      const std::uint32_t here = pieces == 1 ? length : static_cast<std::uint32_t>(random_.below(length + 1));
      --pieces;
      a_.segments[count_++] = {at, here, static_cast<std::uint16_t>(pieces), Verdict::forward};
      at += here;
      length -= here;
    }
  }

  [[nodiscard]] bool right(std::uint32_t i) const { return (a_.checksums_right[i / 32] >> i % 32 & 1) != 0; }
  void set_right(std::uint32_t i, bool right) {
    a_.checksums_right[i / 32] &= ~(1U << i % 32);
    if (right) a_.checksums_right[i / 32] |= 1U << i % 32;
  }

  LaneShape shape_;
  Random random_;
  LaneFaults faults_;
  std::uint32_t longest_;
  std::shared_ptr<std::byte> memory_;
  std::vector<LanePeer> peers_;
  std::vector<std::uint32_t> new_ones_;
  BurstSlot a_{};
  std::size_t used_ = 0;
  std::uint32_t count_ = 0;
  Nanos now_{1'000'000'000'000};
  bool odd_acknowledgement_ = false;
  std::uint64_t ended_ = 0;
};

/// Connections, each with as many segments as may lie to each other in a way, all in one burst.
class OverlapTraffic {
 public:
  explicit OverlapTraffic(const LaneMemorySource& memory) : memory_(memory(kBytes)) {}

  /// Connection i is of way i; a point is so many bytes from the one before. Fills the slots of both lanes in and
  /// returns the number of descriptors.
  std::uint32_t fill(const BurstSlot& a, const BurstSlot& b, std::span<const std::vector<std::uint32_t>> ways,
                     std::uint32_t unit) {
    *a.order = {Nanos{1}, static_cast<std::uint32_t>(ways.size()), 0};
    std::uint32_t count = 0;
    std::uint8_t* at = reinterpret_cast<std::uint8_t*>(memory_.get());
    for (std::uint32_t i = 0; i < ways.size(); ++i) {
      ConnectionChange& change = a.changes[i] = {};
      change.connection = i;
      change.generation = ++generation_;
      change.add = true;
      change.initial = 0xffff'fff0;
      change.window_end = 64;
      change.key = key_of_peer(static_cast<std::uint16_t>(1000 + i));
      for (std::size_t k = 0; k < ways[i].size(); k += 2) {
        packet::TcpFrame frame;
        frame.tcp.source_port = change.key.remote_port;
        frame.tcp.sequence = change.initial + ways[i][k] * unit;
        frame.tcp.flags = packet::kTcpAck;
        const std::uint32_t length = (ways[i][k + 1] - ways[i][k]) * unit;
        std::memset(at + packet::tcp_headers_length(frame), static_cast<int>(k + 1), length);
        const std::uint32_t bytes = emit_segment(at, frame, length);
        a.checksums_right[count / 32] = 0;
        a.segments[count++] = {at, bytes, 0, Verdict::forward};
        at += bytes;
      }
    }
    copy_order(a, b, count);
    return count;
  }

 private:
  static constexpr std::size_t kBytes = 256 << 10;

  std::shared_ptr<std::byte> memory_;
  std::uint32_t generation_ = 0;
};

inline void expect_same_states(const ReceiveState& a, const ReceiveState& b) {
  ASSERT_EQ(std::memcmp(&a, &b, offsetof(ReceiveState, ranges)), 0);
  ASSERT_EQ(a.ranges.count(), b.ranges.count());
  for (std::uint32_t i = 0; i < a.ranges.count(); ++i) ASSERT_EQ(a.ranges[i], b.ranges[i]);
}

inline void expect_same_replies(const WrittenReply& a, const WrittenReply& b) {
  ASSERT_EQ(a.length, b.length);
  ASSERT_EQ(a.announced, b.announced);
  ASSERT_EQ(std::memcmp(a.bytes, b.bytes, a.length), 0);
}

/// What two lanes told of a burst is the same, but for the order of records.
inline void expect_same_answers(const BurstSlot& a, const BurstSlot& b, std::uint32_t count) {
  ASSERT_EQ(a.result->records, b.result->records);
  ASSERT_EQ(a.result->for_host, b.result->for_host);
  ASSERT_EQ(a.result->bytes, b.result->bytes);
  for (std::size_t i = 0; i < kDispositions; ++i) ASSERT_EQ(a.result->dispositions[i], b.result->dispositions[i]) << i;
  for (std::uint32_t i = 0; i < count; ++i) ASSERT_EQ(a.outcomes[i], b.outcomes[i]) << i;
  const auto sorted = [](const BurstSlot& slot) {
    std::vector<const ConnectionRecord*> records;
    for (std::uint32_t i = 0; i < slot.result->records; ++i) records.push_back(slot.records + i);
    std::ranges::sort(records, {}, [](const ConnectionRecord* record) { return record->connection; });
    return records;
  };
  const auto of_a = sorted(a);
  const auto of_b = sorted(b);
  for (std::size_t i = 0; i < of_a.size(); ++i) {
    SCOPED_TRACE(i);
    ASSERT_EQ(of_a[i]->connection, of_b[i]->connection);
    ASSERT_EQ(of_a[i]->generation, of_b[i]->generation);
    ASSERT_EQ(of_a[i]->notes.touched, of_b[i]->notes.touched);
    ASSERT_EQ(of_a[i]->notes.heard, of_b[i]->notes.heard);
    ASSERT_EQ(of_a[i]->notes.challenges, of_b[i]->notes.challenges);
    ASSERT_EQ(of_a[i]->notes.urgent_end, of_b[i]->notes.urgent_end);
    ASSERT_EQ(of_a[i]->acknowledge, of_b[i]->acknowledge);
    ASSERT_EQ(of_a[i]->written, of_b[i]->written);
    if (of_a[i]->written) expect_same_replies(of_a[i]->reply, of_b[i]->reply);
    expect_same_states(of_a[i]->state, of_b[i]->state);
  }
}

}  // namespace warpline::stream::testing
