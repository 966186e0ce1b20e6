// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <cuda/atomic>

#include "warpline/base/device/shared_words.h"
#include "warpline/packet/headers/ethernet.h"
#include "warpline/stream/gpu/copy_by_warp.cuh"
#include "warpline/stream/gpu/stream_lanes.h"
#include "warpline/stream/internal/lane_layout.h"
#include "warpline/stream/internal/plain_segment.h"

namespace warpline::stream {

/// What a CTA keeps of the burst in hand, in shared memory.
struct LaneBurst {
  SegmentFields fields[LaneShape::kMostBurst];       ///< of each descriptor that begins a frame
  std::uint32_t connection[LaneShape::kMostBurst];   ///< KeyPlaces::kNone: no segment for a connection
  std::uint32_t touched[LaneShape::kMostBurst];      ///< connections that the burst brought segments of
  uint4 heads[LaneShape::kMostBurst / 32][kWarp];    ///< of each warp, on their way to its threads
  WrittenReply replies[LaneShape::kMostBurst / 32];  ///< of each warp, which writes one at a time
  std::uint32_t touched_count;
  std::uint32_t pieces;        ///< that the first warp has listed
  std::uint32_t ready_pieces;  ///< of these, those that the other warps may copy
  std::uint32_t decided;       ///< 1 when all pieces are listed
  std::uint32_t for_host;
  unsigned long long bytes;
  std::uint32_t dispositions[kDispositions];
};

/// The head of a frame: headers are read from here byte by byte, which over the bus would be a way of its own for each
/// byte.
struct FrameHead {
  static constexpr unsigned kWords = 6;
  uint4 words[kWords];
  Segment parts[2];

  /// Returns the first words of a frame that begins with `words`.
  [[nodiscard]] __device__ FrameWords first() const {
    FrameWords head;
#pragma unroll
    for (std::uint32_t i = 0; i < FrameWords::kCount; ++i) {
      const uint4& word = words[i / 4];
      head.words[i] = i % 4 == 0 ? word.x : i % 4 == 1 ? word.y : i % 4 == 2 ? word.z : word.w;
    }
    return head;
  }

  /// Returns the frame of a descriptor, its head lying here.
  __device__ FrameRef frame(const Segment& whole) {
    const auto skip = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(whole.data) % sizeof(uint4));
    const std::uint32_t here = min(static_cast<std::uint32_t>(sizeof(words)) - skip, whole.length);
    parts[0] = {reinterpret_cast<std::uint8_t*>(words) + skip, here, 1, whole.verdict};
    parts[1] = {whole.data + here, whole.length - here, 0, whole.verdict};
    return {parts, 2, whole.length};
  }
};

/// The phases of a burst, each by all threads of the CTA; between two of them lies a barrier.
class LaneBurstWork {
 public:
  __device__ LaneBurstWork(const LaneView& lane, LaneBurst& burst, std::uint64_t sequence, std::uint32_t count)
      : lane_(lane),
        burst_(burst),
        slot_(SlotLayout(lane.shape).slot(lane.slots, sequence)),
        sequence_(static_cast<std::uint32_t>(sequence)),
        count_(count) {}

  /// Carries out what was ordered with the burst, and nothing else. Ends with a barrier.
  __device__ void take_order() {
    WindowTell tell;
    if (from_last() < min(lane_.shape.connections, kTellsAtOnce)) tell = slot_.tells[from_last()];
    order_ = *slot_.order;
    carry_out_orders(tell);
    __syncthreads();
  }

  /// Takes the burst. Ends with a barrier, behind which everything that it wrote is there for whoever sees what the
  /// calling thread then stores by a release.
  __device__ void take() {
    begin();
    // All that the host wrote is asked for at once: each way over the bus takes longer than all of them side by side.
    const std::uint32_t i = threadIdx.x;
    Segment mine{nullptr, 0, 0, Verdict::forward};
    if (i < count_) mine = slot_.segments[i];
    const std::uint32_t right = i < count_ ? slot_.checksums_right[i / 32] : 0;
    WindowTell tell;
    if (from_last() < min(lane_.shape.connections, kTellsAtOnce)) tell = slot_.tells[from_last()];
    order_ = *slot_.order;
    __syncthreads();
    carry_out_orders(tell);
    read_frames(mine, right);
    place_bytes();
    fence_aliases();  // rings are mapped twice, and read by either address
    __threadfence();
    __syncthreads();
    publish_reach();
    __syncthreads();
    write_records();
    __syncthreads();
  }

 protected:
  /// Decides on the frames that were read, and copies what is stored.
  __device__ void place_bytes() {
    __syncthreads();
    if (threadIdx.x < kWarp) {
      decide();
    } else if (lane_.station.discards) {
      finish_pieces<false>();
    } else {
      finish_pieces<true>();
    }
  }

  /// The bytes are there: that they can be read is said first to consumers on the GPU, then to the host. The release
  /// also covers what other threads have written before the barrier, whose fences are not this thread's.
  __device__ void publish_reach() {
    for (std::uint32_t i = threadIdx.x; i < burst_.touched_count; i += blockDim.x) {
      const std::uint32_t index = burst_.touched[i];
      cuda::atomic_ref<std::uint64_t, cuda::thread_scope_device>(lane_.board.places[index].reach)
          .store(LaneView::reach_word(lane_.connections[index].state), cuda::memory_order_release);
    }
  }

  __device__ void begin() {
    if (threadIdx.x < kDispositions) burst_.dispositions[threadIdx.x] = 0;
    if (threadIdx.x == 0) {
      burst_.touched_count = 0;
      burst_.pieces = 0;
      burst_.ready_pieces = 0;
      burst_.decided = 0;
      burst_.for_host = 0;
      burst_.bytes = 0;
    }
  }

  [[nodiscard]] __device__ auto key_of() const {
    return [connections = lane_.connections](std::uint32_t index) -> const ConnectionKey& {
      return connections[index].key;
    };
  }
  [[nodiscard]] __device__ KeyPlaces places() const { return {lane_.places, lane_.place_mask, lane_.station.secret}; }

  /// `mine` is the tell of the thread's number, from the last one on: the first ones have frames to read. Before
  /// anything is decided there must be a barrier.
  __device__ void carry_out_orders(const WindowTell& mine) {
    // The bounds are the host's promise; a lane holds to them all the same.
    if (order_.changes != 0) {
      if (threadIdx.x == 0) {
        const std::uint32_t changes = min(order_.changes, lane_.shape.changes);
        for (std::uint32_t i = 0; i < changes; ++i) carry_out(lane_, slot_.changes[i]);
      }
      __syncthreads();
    }
    const std::uint32_t tells = min(order_.tells, lane_.shape.connections);
    for (std::uint32_t i = from_last(); i < tells; i += blockDim.x) {
      const WindowTell tell = i < kTellsAtOnce ? mine : slot_.tells[i];
      lane_.connections[tell.connection].learn(tell);
    }
  }
  [[nodiscard]] __device__ static std::uint32_t from_last() { return blockDim.x - 1 - threadIdx.x; }

  /// A thread a descriptor: a CTA has at least as many as a burst. `right` is the word of checksums_right with its bit.
  __device__ void read_frames(const Segment& mine, std::uint32_t right) {
    const std::uint32_t i = threadIdx.x;
    // A frame begins where the descriptor before ends one.
    unsigned more_before = __shfl_up_sync(kWholeWarp, static_cast<unsigned>(mine.more), 1);
    if (i % kWarp == 0) more_before = i == 0 || i >= count_ ? 0 : slot_.segments[i - 1].more;
    const bool begins = i < count_ && more_before == 0;
    FrameHead head;
    fetch_heads(begins && mine.more == 0 ? mine : Segment{nullptr, 0, 0, Verdict::forward}, head);
    if (i >= count_) return;
    lane_.segments[i] = mine;
    if (begins) {
      read_frame(i, mine, head, (right >> i % 32 & 1) != 0);
    } else {
      burst_.connection[i] = KeyPlaces::kNone;
      slot_.outcomes[i] = kGoesOn;
    }
  }

  /// By a warp: fetches the head of each thread's frame, if it has one, by eight threads, so that it crosses the bus in
  /// one piece.
  __device__ void fetch_heads(const Segment& mine, FrameHead& head) {
    constexpr unsigned kThreads = 8;  // of a frame
    static_assert(FrameHead::kWords <= kThreads);
    if (__all_sync(kWholeWarp, mine.length == 0)) return;
    const unsigned lane = threadIdx.x % kWarp;
    const unsigned word = lane % kThreads;
    uint4 held[kThreads];
#pragma unroll
    for (unsigned k = 0; k < kThreads; ++k) {
      const unsigned owner = (k * kWarp + lane) / kThreads;
      const auto at = __shfl_sync(kWholeWarp, reinterpret_cast<std::uintptr_t>(mine.data), owner);
      const std::uint32_t end = at % sizeof(uint4) + __shfl_sync(kWholeWarp, mine.length, owner);
      held[k] = uint4{0, 0, 0, 0};
      if (word < FrameHead::kWords && word * sizeof(uint4) < end) {
        held[k] = reinterpret_cast<const uint4*>(at - at % sizeof(uint4))[word];
      }
    }
    uint4* const way = burst_.heads[threadIdx.x / kWarp];
#pragma unroll
    for (unsigned k = 0; k < kThreads; ++k) {
      way[lane] = held[k];
      __syncwarp();
      if (lane * kThreads / kWarp == k) {
#pragma unroll
        for (unsigned i = 0; i < FrameHead::kWords; ++i) head.words[i] = way[lane * kThreads % kWarp + i];
      }
      __syncwarp();
    }
  }

  __device__ void read_frame(std::uint32_t i, const Segment& mine, FrameHead& head, bool checksums_are_right) {
    const FrameRef frame = mine.more == 0 ? head.frame(mine) : frame_at(slot_.segments + i);
    SegmentReading reading;
    const bool aligned = reinterpret_cast<std::uintptr_t>(mine.data) % sizeof(uint4) == 0;
    if (!checksums_are_right || mine.more != 0 || !aligned || !read_plain_segment(head.first(), mine.length, reading)) {
      SynOptions offered;
      reading = read_segment(frame, checksums_are_right, offered);
    }
    std::uint32_t index = KeyPlaces::kNone;
    const bool special = (reading.flags & (packet::kTcpSyn | packet::kTcpRst)) != 0;
    if (reading.disposition == Disposition::stored && !special && is_for_us(frame)) {
      index = places().find(reading.key, key_of());
    }
    burst_.connection[i] = index;
    if (index != KeyPlaces::kNone) {
      burst_.fields[i] = reading;
    } else if (reading.disposition == Disposition::wrong_checksum && is_for_us(frame)) {
      slot_.outcomes[i] = static_cast<std::uint8_t>(Disposition::wrong_checksum);
      atomicAdd(&burst_.dispositions[static_cast<unsigned>(Disposition::wrong_checksum)], 1);
    } else {
      slot_.outcomes[i] = kForHost;
      atomicAdd(&burst_.for_host, 1);
    }
  }

  /// As the host's receiver has it.
  [[nodiscard]] __device__ bool is_for_us(FrameRef frame) const {
    if (frame.head_length() < packet::EthernetView::kHeaderLength) return false;
    const packet::EthernetView ethernet(frame.data());
    bool same = (ethernet.source()[0] & 1) == 0;
#pragma unroll
    for (unsigned i = 0; i < 6; ++i) same = same && ethernet.destination()[i] == lane_.station.own.mac.bytes[i];
    return same;
  }

  /// By the first warp: decides on 32 descriptors at a time, in their order. Those of one connection are a group, whose
  /// segments are accepted as runs where that can be, and else one by one; groups go on beside each other.
  __device__ void decide() {
    const unsigned lane = threadIdx.x;
    for (std::uint32_t base = 0; base < count_; base += kWarp) {
      const std::uint32_t i = base + lane;
      const std::uint32_t index = i < count_ ? burst_.connection[i] : KeyPlaces::kNone;
      const bool active = index != KeyPlaces::kNone;
      unsigned undecided = __ballot_sync(kWholeWarp, active);
      if (undecided == 0) continue;
      const Segment mine = active ? lane_.segments[i] : Segment{nullptr, 0, 0, Verdict::forward};
      const unsigned group = __match_any_sync(kWholeWarp, index);
      const unsigned before = group & ((1U << lane) - 1);
      bool plain = false;
      bool joined = false;
      if (active) {
        const ReceiveState& state = lane_.connections[index].state;
        plain = SegmentAcceptor::plain(state, burst_.fields[i]);
        joined = plain && before != 0 &&
                 SegmentAcceptor::joins(state, burst_.fields[base + kWarp - 1 - __clz(before)], burst_.fields[i]);
      }
      const unsigned plain_ones = __ballot_sync(kWholeWarp, plain);
      const unsigned joined_ones =
          __ballot_sync(kWholeWarp, joined && (plain_ones & 1U << (kWarp - 1 - __clz(before))));
      Disposition disposition = Disposition::stored;
      while (undecided != 0) {
        // The group's first segment that is left, and those that join it.
        const unsigned left = active ? group & undecided : 0;
        const unsigned first = left == 0 ? lane : __ffs(left) - 1;
        const unsigned breaks = left & ~joined_ones & ~(1U << first);
        const unsigned run = breaks == 0 ? left : left & ((1U << (__ffs(breaks) - 1)) - 1);
        const std::uint32_t length = (run >> lane & 1) != 0 ? burst_.fields[i].payload_length : 0;
        const std::uint32_t largest = __reduce_max_sync(group, length);
        const unsigned flags = __reduce_or_sync(group, (run >> lane & 1) != 0 ? unsigned{burst_.fields[i].flags} : 0U);
        bool taken = false;
        std::uint64_t begin = 0;
        if (left != 0 && lane == first) {
          LaneConnection& connection = touch(index);
          if ((plain_ones >> lane & 1) != 0 && !is_forgotten(connection.last_heard, order_.now)) {
            taken = accept_run(connection, base, run, largest, begin);
            // As take_segment() has it.
            if (taken && (flags & packet::kTcpPsh) != 0) connection.state.pushed = true;
          }
          if (!taken) disposition = accept(connection, i);
        }
        const bool in_run = (__shfl_sync(kWholeWarp, static_cast<unsigned>(taken), first) & run >> lane & 1) != 0;
        begin = __shfl_sync(kWholeWarp, begin, first);
        const SegmentFields& fields = burst_.fields[i < count_ ? i : base];
        const std::uint64_t offset = begin + (fields.sequence - burst_.fields[base + first].sequence);
        const bool whole = in_run && mine.more == 0;
        const unsigned whole_ones = __ballot_sync(kWholeWarp, whole);
        if (whole_ones != 0) {
          std::uint32_t at = lane == 0 ? atomicAdd(&burst_.pieces, __popc(whole_ones)) : 0;
          at = __shfl_sync(kWholeWarp, at, 0) + __popc(whole_ones & ((1U << lane) - 1));
          if (whole)
            lane_.pieces[at] = {place_of(index, offset), mine.data + fields.payload_offset, fields.payload_length};
        }
        if (in_run && !whole) queue(index, i, {offset, 0, fields.payload_length});
        undecided &= ~__ballot_sync(kWholeWarp, in_run || (left != 0 && lane == first));
      }
      if (active) slot_.outcomes[i] = static_cast<std::uint8_t>(disposition);
      const bool stored = active && disposition == Disposition::stored;
      const unsigned stored_ones = __ballot_sync(kWholeWarp, stored);
      if (active && !stored) atomicAdd(&burst_.dispositions[static_cast<unsigned>(disposition)], 1);
      __threadfence_block();
      __syncwarp();
      if (lane == 0) {
        atomicAdd(&burst_.dispositions[static_cast<unsigned>(Disposition::stored)], __popc(stored_ones));
        SharedCount(burst_.ready_pieces).store(burst_.pieces, cuda::memory_order_release);
      }
      __syncwarp();
    }
    if (lane == 0) SharedCount(burst_.decided).store(1, cuda::memory_order_release);
  }

  [[nodiscard]] __device__ std::uint8_t* place_of(std::uint32_t index, std::uint64_t offset) const {
    const std::uint64_t ring = lane_.shape.ring_bytes;
    return lane_.rings + 2 * ring * index + (offset & (ring - 1));
  }

  __device__ LaneConnection& touch(std::uint32_t index) {
    LaneConnection& connection = lane_.connections[index];
    if (connection.burst != sequence_) {
      connection.burst = sequence_;
      connection.notes = {};
      connection.frame = 0;
      burst_.touched[atomicAdd(&burst_.touched_count, 1)] = index;
    }
    return connection;
  }

  /// By the lane of the run's first segment: `run` has a bit for each of its segments, from `base` on.
  __device__ bool accept_run(LaneConnection& connection, std::uint32_t base, unsigned run, std::uint32_t largest,
                             std::uint64_t& begin) {
    const SegmentFields& first = burst_.fields[base + __ffs(run) - 1];
    const SegmentFields& last = burst_.fields[base + kWarp - 1 - __clz(run)];
    SegmentRun segments;
    segments.sequence = first.sequence;
    segments.timestamp = first.timestamp;
    segments.length = last.sequence + last.payload_length - first.sequence;
    segments.largest = largest;
    for (unsigned rest = run; rest != 0 && segments.last_count != ReceiveState::kRecent;) {
      const unsigned at = kWarp - 1 - __clz(rest);
      segments.last_begins[segments.last_count++] = burst_.fields[base + at].sequence - first.sequence;
      rest &= ~(1U << at);
    }
    const std::uint64_t near = connection.state.next;
    if (!SegmentAcceptor(connection.state).accept_run(segments)) return false;
    begin = static_cast<std::uint64_t>(offset_near(near, first.sequence, connection.state.initial));
    connection.notes.touched = true;
    connection.notes.heard = true;
    connection.last_heard = order_.now;
    return true;
  }

  /// By one lane.
  __device__ Disposition accept(LaneConnection& connection, std::uint32_t i) {
    const SegmentFields& fields = burst_.fields[i];
    if (is_forgotten(connection.last_heard, order_.now)) connection.state.timestamp = fields.timestamp;
    const Acceptance acceptance = take_segment(connection.state, fields, connection.notes);
    if (connection.notes.heard) connection.last_heard = order_.now;
    for (std::uint32_t k = 0; k < acceptance.count; ++k) queue(burst_.connection[i], i, acceptance.pieces[k]);
    return acceptance.disposition;
  }

  /// Has a part of the payload of frame `i` copied. The window's check, which the acceptor has made, is what proves
  /// that it finds place in the ring.
  __device__ void queue(std::uint32_t index, std::uint32_t i, const SegmentPiece& piece) {
    std::uint8_t* to = place_of(index, piece.offset);
    std::uint32_t skip = burst_.fields[i].payload_offset + piece.skip;
    std::uint32_t left = piece.length;
    for (std::uint32_t k = i; left != 0 && k < count_; ++k) {
      const Segment segment = lane_.segments[k];
      if (skip >= segment.length) {
        skip -= segment.length;
        continue;
      }
      const std::uint32_t here = min(left, segment.length - skip);
      lane_.pieces[atomicAdd(&burst_.pieces, 1)] = {to, segment.data + skip, here};
      to += here;
      left -= here;
      skip = 0;
    }
  }

  /// By all warps but the first, a warp a piece, while that one decides on further ones: counts their bytes and, with
  /// `kStores`, copies them.
  template <bool kStores>
  __device__ void finish_pieces() {
    const unsigned lane = threadIdx.x % kWarp;
    const unsigned warps = blockDim.x / kWarp - 1;
    const SharedCount ready(burst_.ready_pieces);
    const SharedCount decided(burst_.decided);
    unsigned long long bytes = 0;
    std::uint32_t next = threadIdx.x / kWarp - 1;
    while (true) {
      std::uint32_t end = 0;
      if (lane == 0) {
        bool last = false;
        while (true) {
          last = decided.load(cuda::memory_order_acquire) != 0;
          end = ready.load(cuda::memory_order_acquire);
          if (last || next < end) break;
          __nanosleep(50);
        }
        if (next >= end) end = 0;
      }
      end = __shfl_sync(kWholeWarp, end, 0);
      if (end == 0) break;
      // A lane has one piece ready for the warp.
      const std::uint32_t mine = next + lane * warps;
      CopyPiece piece{nullptr, nullptr, 0};
      if (mine < end) piece = lane_.pieces[mine];
      bytes += piece.length;
      for (unsigned k = 0; k < kWarp && next < end; ++k, next += warps) {
        if constexpr (kStores) {
          const std::uint64_t to = __shfl_sync(kWholeWarp, reinterpret_cast<std::uint64_t>(piece.to), k);
          const std::uint64_t from = __shfl_sync(kWholeWarp, reinterpret_cast<std::uint64_t>(piece.from), k);
          const std::uint32_t length = __shfl_sync(kWholeWarp, piece.length, k);
          copy_by_warp(reinterpret_cast<std::uint8_t*>(to), reinterpret_cast<const std::uint8_t*>(from), length);
        }
      }
    }
    if (bytes != 0) atomicAdd(&burst_.bytes, bytes);
  }

  /// By one warp: what the burst did to the connection that it touched as the i-th. Returns its reply, which lies in
  /// shared memory; of length 0 if it does not write one.
  __device__ WrittenReply& write_record(std::uint32_t i, bool writes) {
    const unsigned lane = threadIdx.x % kWarp;
    const std::uint32_t index = burst_.touched[i];
    LaneConnection& connection = lane_.connections[index];
    ReceiveState& state = connection.state;
    ConnectionRecord& record = slot_.records[i];
    const std::size_t bytes = offsetof(ReceiveState, ranges) + ReceivedRanges::bytes(state.ranges.count());
    const auto* const from = reinterpret_cast<const std::uint64_t*>(&state);
    auto* const to = reinterpret_cast<std::uint64_t*>(&record.state);
    for (unsigned k = lane; k < bytes / sizeof(std::uint64_t); k += kWarp) to[k] = from[k];
    __syncwarp();
    WrittenReply& reply = burst_.replies[threadIdx.x / kWarp];
    if (lane == 0) {
      reply.length = 0;
      connection.report(lane_.station, index, order_.now, writes, record, reply);
    }
    __syncwarp();
    return reply;
  }

  /// A warp a record; then the result.
  __device__ void write_records() {
    const unsigned lane = threadIdx.x % kWarp;
    const unsigned warps = blockDim.x / kWarp;
    for (std::uint32_t i = threadIdx.x / kWarp; i < burst_.touched_count; i += warps) {
      // Written byte by byte there, a reply crosses the bus in words of 16 bytes.
      ConnectionRecord& record = slot_.records[i];
      const WrittenReply& reply = write_record(i, lane_.station.acknowledges);
      if (reply.length != 0 && lane < sizeof(WrittenReply) / sizeof(uint4)) {
        reinterpret_cast<uint4*>(&record.reply)[lane] = reinterpret_cast<const uint4*>(&reply)[lane];
      }
      __syncwarp();
    }
    // Words that lie beside each other cross the bus together.
    if (threadIdx.x < kDispositions) slot_.result->dispositions[threadIdx.x] = burst_.dispositions[threadIdx.x];
    if (threadIdx.x != 0) return;
    slot_.result->records = burst_.touched_count;
    slot_.result->for_host = burst_.for_host;
    slot_.result->bytes = burst_.bytes;
  }

  using SharedCount = cuda::atomic_ref<std::uint32_t, cuda::thread_scope_block>;

  static constexpr std::uint32_t kTellsAtOnce = 64;  ///< asked for before it is known whether there are any

  const LaneView& lane_;
  LaneBurst& burst_;
  BurstSlot slot_;
  BurstOrder order_;
  std::uint32_t sequence_;
  std::uint32_t count_;
};

}  // namespace warpline::stream
