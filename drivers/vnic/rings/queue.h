// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_memzone.h>

#include "vnic/common/counters.h"
#include "vnic/common/limits.h"
#include "vnic/faults/faults.h"
#include "vnic/personas/persona.h"
#include "vnic/rings/descriptor.h"

namespace warpline::vnic {

struct Hardware;

/// Null entries behind a software ring's end: the burst loops prefetch at most so far ahead.
inline constexpr std::uint16_t kSoftwareRingTail = 8;

/// A receive queue. The three parts lie on lines of their own: what both sides read, the driver's, the device's.
/// The driver side never looks at the device's part, the device never at mbufs or the software ring.
///
/// A frame takes whole groups of `group` descriptors: 1 normally, the number of segments with buffer split. Buffers of
/// its last group behind its end come back with length 0; kRxEnd stands in the group's last descriptor.
struct RxQueue {
  // Set at set-up, then read by both.
  Hardware* hardware;  ///< for the burst calls, which run its engine; nothing here looks into it
  const rte_memzone* zone;
  RxDescriptor* ring;
  bool inline_engine;  ///< the burst calls run the engine
  std::uint16_t id;
  std::uint16_t size;  ///< descriptors, a multiple of group
  std::uint16_t group;
  std::uint16_t room[kMaxSplit];  ///< bytes posted for each segment of a group: as configured, or the whole buffer
  bool split_at_headers;          ///< segment 0 ends with the headers, `room` bounds it
  bool scatter;                   ///< a frame may take more than one group
  std::atomic<bool> started;

  // The doorbell: descriptors posted so far, free-running. Driver writes (release), device reads (acquire).
  alignas(64) std::atomic<std::uint32_t> posted;

  // The driver's part. Owner: the lcore that polls the queue.
  alignas(64) rte_mbuf** software_ring;
  rte_mempool* pools[kMaxSplit];
  std::uint16_t offset[kMaxSplit];      ///< of the data in the buffer, with the headroom
  std::uint32_t data_at[kMaxSplit];     ///< of the data from the mbuf, if it is the same for all and computed; or 0
  std::uint64_t rearm[kMaxSplit];       ///< rearm_data of a received mbuf
  std::uint64_t base_flags[kMaxSplit];  ///< ol_flags of a received mbuf: external for pinned external buffers
  std::uint64_t offloads;
  std::uint32_t harvested;    ///< descriptors taken back so far, free-running
  std::uint32_t refilled;     ///< descriptors posted so far, as `posted`
  std::uint16_t next;         ///< index of the next descriptor to take back
  std::uint16_t refill_at;    ///< index of the next descriptor to post
  std::uint16_t free_thresh;  ///< posted this many at a time
  std::uint16_t align_mask;   ///< of what a receive call is asked for, the bits that count
  std::uint16_t touches;      ///< bytes of a received frame that the driver touches with the CPU
  bool deferred;              ///< does not start with the port
  std::uint16_t port;
  int timestamp_offset;  ///< of the dynamic field, or -1
  std::uint64_t timestamp_flag;
  /// XOR of buffer_mark() of the first mbuf of every frame handed out: an extended statistic. Written by the owner.
  std::atomic<std::uint64_t> parity;
  std::uint32_t polls;
  Counters driver_counts;

  // The device's part. Owner: whoever runs the engine for this queue.
  alignas(64) std::uint32_t filled;  ///< descriptors written back so far, free-running
  std::uint16_t fill_at;             ///< index of the next descriptor to fill
  Faults::PollDraw stall_draw{0};    ///< for Faults::stall
  Faults::PollDraw rx_out_draw{0};   ///< for Faults::rx_out
  Counters device_counts;
};

/// A transmit queue, in the same three parts.
struct TxQueue {
  Hardware* hardware;  ///< for the burst calls, which run its engine; nothing here looks into it
  const rte_memzone* zone;
  TxDescriptor* ring;
  bool inline_engine;
  std::uint16_t id;
  std::uint16_t size;
  std::atomic<bool> started;

  alignas(64) std::atomic<std::uint32_t> posted;  ///< the doorbell, as RxQueue's

  // The driver's part. Owner: the lcore that sends on the queue.
  alignas(64) rte_mbuf** software_ring;  ///< null but at the descriptor of each segment's mbuf
  std::uint64_t offloads;
  std::uint32_t sent;         ///< descriptors posted so far, as `posted`
  std::uint32_t reclaimed;    ///< descriptors whose buffers were freed so far
  std::uint32_t mixed_until;  ///< of those sent, up to here some mbufs may be linked to others or need more to be freed
  std::uint32_t linked_until;  ///< the same, of mbufs that a look at nb_segs does not tell to be linked
  std::uint16_t next;          ///< index of the next descriptor to post
  std::uint16_t reclaim_at;    ///< index of the next descriptor to free
  std::uint16_t rs_thresh;  ///< kTxReport stands in every so many-th descriptor posted, be it in the middle of a frame
  std::uint16_t free_thresh;  ///< freed when fewer than so many descriptors are free
  bool deferred;              ///< does not start with the port
  std::uint16_t unreported;   ///< descriptors posted since the last one with kTxReport
  bool frees_to_cache;        ///< without fast free: straight into the lcore's cache
  std::uint32_t polls;
  PayloadRead reads;              ///< payload that the driver reads with the CPU, if the port has so many queues
  std::uint64_t unread_flag;      ///< an mbuf with it is left alone; 0: there is none
  std::uint64_t* buffers;         ///< Refill::ring: buf_addr of what stands in the software ring; or null
  rte_mempool* fast_pool;         ///< with fast free: the pool of the first mbuf sent, until another's comes
  Faults::PollDraw full_draw{0};  ///< for Faults::tx_full
  Counters driver_counts;

  // The device's part.
  alignas(64) std::uint32_t fetched;  ///< descriptors read so far, free-running
  std::uint16_t fetch_at;
  std::uint16_t complete_at;  ///< index of the next descriptor whose completion is to be reported
  Counters device_counts;
};

/// Whether burst calls may do anything. Null: a queue that could not be set up anew while its port runs.
template <typename Queue>
[[nodiscard]] inline bool is_started(const Queue* queue) {
  return queue != nullptr && queue->started.load(std::memory_order_relaxed);
}

/// `index` one further in a ring of `size`.
[[nodiscard]] inline std::uint16_t advance(std::uint16_t index, std::uint16_t size) {
  return static_cast<std::uint16_t>(index + 1 == size ? 0 : index + 1);
}

}  // namespace warpline::vnic
