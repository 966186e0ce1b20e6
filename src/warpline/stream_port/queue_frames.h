// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include "warpline/base/frame.h"
#include "warpline/base/statistics/counter.h"
#include "warpline/memory/answer_mbuf.h"
#include "warpline/memory/mbuf_frame.h"
#include "warpline/packet/headers/ethernet.h"
#include "warpline/packet/headers/vlan.h"
#include "warpline/packet/responder.h"
#include "warpline/port/announce/announce.h"
#include "warpline/port/port_queue.h"

namespace warpline::stream_port {

/// What a queue counts of the frames that pass it, whatever they are for. Its thread writes, any thread reads.
struct FrameCounters {
  Counter received;         ///< from the device
  Counter received_bytes;   ///< of these, without FCS
  Counter answered;         ///< asked by ARP, neighbour discovery or echo, and turned into their answers
  Counter not_answered;     ///< asked likewise, while the device took no more frames
  Counter too_many_pieces;  ///< came in more pieces than are looked at
  Counter other_vlan;       ///< came in another VLAN than the queue's, or untagged where that has one
  Counter sent;             ///< that the device took: those of connections, answers and questions
  Counter sent_bytes;       ///< of these, without FCS
  Counter no_mbuf;          ///< turns that ended since no buffer was left for a frame
};

/// The frames of one queue pair of an ethdev: bursts that it received, answers to neighbours, and frames that wait for
/// the device to take them. One thread makes all calls; none waits, allocates or enters the kernel but in the device's
/// driver.
class QueueFrames {
 public:
  static constexpr std::uint16_t kBurst = 64;
  /// Frames that a queue has in hand beside those in the device's rings: a burst, what waits, and one to write.
  static constexpr std::uint32_t kInHand = 4 * kBurst;

  /// `pool` is where frames to be written come from; `responder` answers for the port. Frames of the VLAN `vlan` alone
  /// are taken, and all that are sent have its tag; 0: those that have no VLAN. Nobody above sees tags. The queue's
  /// owner has the counters.
  QueueFrames(port::PortQueue place, rte_mempool* pool, const packet::Responder& responder, std::uint16_t vlan,
              FrameCounters& counters)
      : place_(place), pool_(pool), responder_(responder), vlan_(vlan), counters_(counters) {}
  QueueFrames(const QueueFrames&) = delete;
  QueueFrames& operator=(const QueueFrames&) = delete;
  ~QueueFrames() { close(); }

  /// Takes a burst from the device and calls take(frame, mbuf) for each of it, which frees the mbuf or hands it to
  /// answer(). Returns how many there were, up to `most`.
  template <typename Take>
  std::uint16_t receive(Take&& take, std::uint16_t most = kBurst) {
    std::array<rte_mbuf*, kBurst> burst;
    const std::uint16_t count = rte_eth_rx_burst(place_.port, place_.queue, burst.data(), most);
    const std::uint16_t ahead = std::min(count, kFramesAhead);
    for (std::uint16_t i = 0; i < ahead; ++i) rte_prefetch0(rte_pktmbuf_mtod(burst[i], void*));
    for (std::uint16_t i = 0; i < count; ++i) {
      if (i + ahead < count) rte_prefetch0(rte_pktmbuf_mtod(burst[i + ahead], void*));
      rte_mbuf* const mbuf = burst[i];
      counters_.received_bytes.add(mbuf->pkt_len);
      hand_on(mbuf, take_tag(mbuf), take);
    }
    if (count != 0) counters_.received.add(count);
    return count;
  }

  /// Takes a burst from the device as receive() does, without a look at a byte of it: frames may have tags.
  template <typename Take>
  std::uint16_t receive_unseen(Take&& take, std::uint16_t most) {
    std::array<rte_mbuf*, kBurst> burst;
    const std::uint16_t count = rte_eth_rx_burst(place_.port, place_.queue, burst.data(), most);
    for (std::uint16_t i = 0; i < count; ++i) {
      rte_mbuf* const mbuf = burst[i];
      counters_.received_bytes.add(mbuf->pkt_len);
      const bool tagged = (mbuf->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0 && (mbuf->vlan_tci & kVlanId) != 0;
      hand_on(mbuf, !tagged, take);
    }
    if (count != 0) counters_.received.add(count);
    return count;
  }
  /// Does with the tag of a frame that was received unseen what receive() does. False if the frame is of another VLAN,
  /// and freed; else its descriptor is as it lies then.
  [[nodiscard]] bool take_tag_off(FrameRef frame, rte_mbuf* mbuf) {
    if (!take_tag(mbuf)) {
      counters_.other_vlan.add(1);
      rte_pktmbuf_free(mbuf);
      return false;
    }
    frame.segments[0].data = rte_pktmbuf_mtod(mbuf, std::uint8_t*);
    frame.segments[0].length = mbuf->data_len;
    return true;
  }

  /// Turns a received frame that asks the station for something into its answer, which waits to be sent, or is freed
  /// where there is no room. False, and nothing done, if it does not ask.
  [[nodiscard]] bool answer(FrameRef frame, rte_mbuf* mbuf) {
    if (!memory::answer(responder_, frame, mbuf)) [[likely]]
      return false;
    keep_answer(mbuf);
    return true;
  }

  /// Writes one frame: write(span) fills a buffer and returns the length, 0 for none. False if none was written, also
  /// for want of room or of buffers. Room for the answers to a burst is left, so that connections do not keep the
  /// neighbours waiting.
  template <typename Write>
  [[nodiscard]] bool write(Write&& write) {
    if (unsent_end_ >= kBurst) return false;
    rte_mbuf* const mbuf = write_apart(std::forward<Write>(write));
    if (mbuf == nullptr) return false;
    unsent_[unsent_end_++] = mbuf;
    return true;
  }
  /// Writes one frame likewise and returns it, whether there is room or not: it waits with the caller, who hands it to
  /// push_apart() or frees it. Null if none was written.
  template <typename Write>
  [[nodiscard]] rte_mbuf* write_apart(Write&& write) {
    if (spare_ == nullptr) spare_ = rte_pktmbuf_alloc(pool_);
    if (spare_ == nullptr) [[unlikely]] {
      counters_.no_mbuf.add(1);
      return nullptr;
    }
    const std::span<std::uint8_t> room{rte_pktmbuf_mtod(spare_, std::uint8_t*), rte_pktmbuf_tailroom(spare_)};
    const std::uint32_t length = write(room);
    if (length == 0) return nullptr;
    rte_mbuf* const mbuf = std::exchange(spare_, nullptr);
    finish(mbuf, length);
    return mbuf;
  }

  /// Returns how many frames push() and push_apart() take.
  [[nodiscard]] std::uint16_t room() const { return unsent_end_ >= kBurst ? 0 : kBurst - unsent_end_; }
  /// Has the first `length` bytes of a received frame sent, which somebody has written there, and nothing else of it.
  void push(rte_mbuf* mbuf, std::uint32_t length);
  /// Has a frame of write_apart() sent.
  void push_apart(rte_mbuf* mbuf) { unsent_[unsent_end_++] = mbuf; }

  /// Has send() send what `announcer` has, too; null: nothing. At set-up.
  void set_announcer(port::Announcer* announcer) { announcer_ = announcer; }

  /// Sends what waits, as much as the device takes: the rest waits for the next call. True if it took a frame.
  bool send();

  /// Gives the buffers back that it holds. At the end; nothing is sent any more.
  void close();

 private:
  /// Hands a frame on; one of another VLAN, or in too many pieces, is counted and freed.
  template <typename Take>
  void hand_on(rte_mbuf* mbuf, bool of_this_vlan, Take& take) {
    Segment segments[kMaxSegments];
    if (!of_this_vlan) [[unlikely]] {
      counters_.other_vlan.add(1);
      rte_pktmbuf_free(mbuf);
    } else if (memory::segments_of(mbuf, segments) == 0) [[unlikely]] {
      counters_.too_many_pieces.add(1);
      rte_pktmbuf_free(mbuf);
    } else {
      take(frame_at(segments), mbuf);
    }
  }
  static constexpr std::uint16_t kFramesAhead = 4;  ///< whose headers are fetched early
  static constexpr std::uint16_t kVlanId = 0xfff;   ///< of a tag's control field

  /// Takes the tag off, unless the device has or there is none. False if the frame is of another VLAN, or has a tag
  /// within that one.
  [[nodiscard]] bool take_tag(rte_mbuf* mbuf) const {
    const bool stripped = (mbuf->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0;
    if (!stripped && vlan_ == 0 && !has_tag(mbuf)) [[likely]]
      return true;
    return take_tag_off(mbuf, stripped);
  }
  [[nodiscard]] static bool has_tag(const rte_mbuf* mbuf) {
    return mbuf->data_len >= sizeof(rte_ether_hdr) &&
           packet::is_vlan(packet::EthernetView(rte_pktmbuf_mtod(mbuf, const std::uint8_t*)).ether_type());
  }
  [[nodiscard]] bool take_tag_off(rte_mbuf* mbuf, bool stripped) const;
  void put_tag_on(rte_mbuf* mbuf) const;
  void keep_answer(rte_mbuf* mbuf);
  void finish(rte_mbuf* mbuf, std::uint32_t length) const;

  port::PortQueue place_;
  rte_mempool* pool_;
  packet::Responder responder_;
  std::uint16_t vlan_;  ///< ID, 0: none
  FrameCounters& counters_;
  rte_mbuf* spare_ = nullptr;                 ///< the buffer that the next frame is written into
  std::array<rte_mbuf*, 2 * kBurst> unsent_;  ///< those before unsent_end_: that the device has not taken yet
  std::uint16_t unsent_end_ = 0;
  port::Announcer* announcer_ = nullptr;
};

}  // namespace warpline::stream_port
