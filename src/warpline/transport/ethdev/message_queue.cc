// SPDX-License-Identifier: Apache-2.0
#include "warpline/transport/ethdev/message_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_ring.h>

#include "warpline/base/give_way.h"
#include "warpline/base/random.h"

namespace warpline::transport {
namespace {

constexpr Nanos kPatience{10'000'000};  ///< with a device that takes no packet

}  // namespace

/// In the private area of a payload's mbuf, where it outlives the buffer that it is about.
struct MessageQueue::Gathered {
  rte_mbuf_ext_shared_info shared;
  std::uint64_t token;
  MessageQueue* owner;
};

std::uint16_t MessageSteering::owner(std::uint16_t here, std::uint16_t to_port, const message::PeerAddress& from,
                                     std::uint16_t endpoint) const {
  const auto index = static_cast<std::uint16_t>(to_port - first_port);
  if (own_ports) return index < workers ? index : workers;
  if (index != 0) return workers;
  if (endpoint < workers) return endpoint;
  if (by_device || workers == 1) return here;
  std::uint64_t words[2];
  std::memcpy(words, from.ip.data(), sizeof(words));
  return static_cast<std::uint16_t>(mix64(mix64(words[0] ^ from.port) ^ words[1]) % workers);
}

std::uint16_t MessageQueue::private_bytes() {
  return (sizeof(Gathered) + RTE_MBUF_PRIV_ALIGN - 1) / RTE_MBUF_PRIV_ALIGN * RTE_MBUF_PRIV_ALIGN;
}

Result<std::unique_ptr<MessageQueue>> MessageQueue::make(const MessageQueueSetup& setup, MessageLink& link) {
  std::unique_ptr<MessageQueue> queue(new MessageQueue(setup, link));
  if (setup.payloads == nullptr) return queue;
  static std::atomic<unsigned> made{0};
  // As many tokens as payloads can be out there: it is never full.
  queue->done_room_ = setup.payloads->size;
  // A token takes the place of a pointer: in DPDK 24.11 rte_ring_create_elem() has no C linkage.
  static_assert(sizeof(std::uint64_t) == sizeof(void*));
  queue->done_ = rte_ring_create(fmt::format("message_done{}", made++).c_str(), queue->done_room_, SOCKET_ID_ANY,
                                 RING_F_SC_DEQ | RING_F_EXACT_SZ);
  if (queue->done_ == nullptr) {
    return environment_error(fmt::format("cannot make a ring of {} tokens", queue->done_room_), rte_strerror(rte_errno),
                             "reserve more hugepages");
  }
  return queue;
}

MessageQueue::MessageQueue(const MessageQueueSetup& setup, MessageLink& link)
    : setup_(setup), link_(link), ways_(std::size_t{setup.max_sessions} + 1) {
  scratch_.resize(std::size_t{kBurst} * setup.datagram_bytes);
}

MessageQueue::~MessageQueue() {
  close();
  rte_ring_free(done_);
}

void MessageQueue::close() {
  free_received();
  rte_pktmbuf_free_bulk(unsent_.data() + unsent_at_, static_cast<unsigned>(unsent_end_ - unsent_at_));
  rte_pktmbuf_free_bulk(heads_.data() + heads_used_, static_cast<unsigned>(kBurst - heads_used_));
  unsent_at_ = unsent_end_ = 0;
  heads_used_ = kBurst;
}

/// A port is polled: there is nothing to sleep on. But others may wait for the core.
void MessageQueue::wait(Nanos, Nanos) { give_way(); }

// What is sent.

std::span<message::Outgoing> MessageQueue::room() {
  flush();
  if (unsent_at_ != unsent_end_) return {};
  if (heads_used_ >= kBurst / 2) fill_heads();
  return std::span(outgoing_).subspan(heads_used_);
}

/// Many at a time, for one costs as much as some.
void MessageQueue::fill_heads() {
  if (rte_pktmbuf_alloc_bulk(setup_.pool, heads_.data(), heads_used_) != 0) {
    counters_.no_mbuf.add(1);
    return;
  }
  const bool gathers = setup_.payloads != nullptr;
  for (std::uint16_t i = 0; i < heads_used_; ++i) {
    outgoing_[i].head = rte_pktmbuf_mtod(heads_[i], std::uint8_t*);
    outgoing_[i].head_capacity = rte_pktmbuf_tailroom(heads_[i]);
    outgoing_[i].copy_up_to = gathers ? message::kMaxHeadBytes : setup_.datagram_bytes;
  }
  heads_used_ = 0;
}

void MessageQueue::send(std::size_t count, Nanos now) {
  unsent_at_ = unsent_end_ = 0;
  constexpr std::size_t kWaysAhead = 4;
  const std::size_t end = heads_used_ + count;
  for (std::size_t i = heads_used_; i < heads_used_ + kWaysAhead; ++i) fetch_way(i, end);
  for (std::size_t i = heads_used_; i < end; ++i) {
    const message::Outgoing& outgoing = outgoing_[i];
    rte_mbuf* const head = heads_[i];
    fetch_way(i + kWaysAhead, end);
    const UdpPath* const path = path_to(outgoing, now);
    if (path == nullptr) [[unlikely]] {
      drop(head, outgoing);
      continue;
    }
    head->data_len = static_cast<std::uint16_t>(outgoing.head_length);
    head->pkt_len = outgoing.head_length;
    if (outgoing.payload_length != 0 && !add_payload(head, outgoing)) {
      counters_.refused.add(1);
      drop(head, outgoing);
      continue;
    }
    const std::span<const std::uint8_t> pieces[] = {
        {outgoing.head, head->data_len},
        {head->next == nullptr ? nullptr : outgoing.payload, head->pkt_len - head->data_len}};
    UdpChecksum checksum = setup_.checksum;
    if (outgoing.payload_device && checksum == UdpChecksum::software) checksum = UdpChecksum::none;
    const std::uint32_t length = path->length();
    head->data_off = static_cast<std::uint16_t>(head->data_off - length);
    head->data_len = static_cast<std::uint16_t>(head->data_len + length);
    head->pkt_len += length;
    constexpr std::uint8_t kEcnCapable = 2;  // ECT(0), RFC 3168
    path->write(rte_pktmbuf_mtod(head, std::uint8_t*), pieces, outgoing.ecn_capable ? kEcnCapable : std::uint8_t{0},
                checksum);
    if (checksum == UdpChecksum::device) {
      head->ol_flags |= RTE_MBUF_F_TX_UDP_CKSUM | (path->v4() ? RTE_MBUF_F_TX_IPV4 : RTE_MBUF_F_TX_IPV6);
      head->l2_len = path->l2_length();
      head->l3_len = path->l3_length();
    }
    unsent_[unsent_end_++] = head;
  }
  heads_used_ = static_cast<std::uint16_t>(end);
  waits_since_ = now;
  flush();
}

/// A device whose link or peer is gone takes nothing: what waits for it is lost, so that messages can end.
void MessageQueue::give_up(Nanos now) {
  if (std::exchange(took_, false)) waits_since_ = now;
  if (now.value - waits_since_.value < kPatience.value) return;
  const auto count = static_cast<unsigned>(unsent_end_ - unsent_at_);
  rte_pktmbuf_free_bulk(unsent_.data() + unsent_at_, count);
  counters_.refused.add(count);
  unsent_at_ = unsent_end_ = 0;
}

void MessageQueue::flush() {
  // Drivers may look at the first packet before the count: net_memif of DPDK 24.11 does.
  if (unsent_at_ == unsent_end_) return;
  const std::uint16_t sent = rte_eth_tx_burst(setup_.place.port, setup_.place.queue, unsent_.data() + unsent_at_,
                                              static_cast<std::uint16_t>(unsent_end_ - unsent_at_));
  unsent_at_ = static_cast<std::uint16_t>(unsent_at_ + sent);
  counters_.sent.add(sent);
  took_ = took_ || sent != 0;
}

/// The payload's token comes back at once, and its head goes to the pool.
void MessageQueue::drop(rte_mbuf* head, const message::Outgoing& outgoing) {
  if (outgoing.token != 0) tokens_[token_count_++] = outgoing.token;
  rte_pktmbuf_free(head);
}

bool MessageQueue::may_gather(const message::Outgoing& outgoing) const {
  if (setup_.payloads == nullptr || gathered_ == done_room_) return false;
  if (setup_.any_memory && !outgoing.payload_device) return true;
  const std::uint8_t* const end = outgoing.payload + outgoing.payload_length;
  return std::ranges::any_of(allowed_, [&](std::span<const std::uint8_t> memory) {
    return outgoing.payload >= memory.data() && end <= memory.data() + memory.size();
  });
}

/// Gathers the payload, or copies it behind the head. False if neither can be.
bool MessageQueue::add_payload(rte_mbuf* head, const message::Outgoing& outgoing) {
  rte_mbuf* const piece = may_gather(outgoing) ? rte_pktmbuf_alloc(setup_.payloads) : nullptr;
  if (piece != nullptr) {
    auto* const gathered = static_cast<Gathered*>(rte_mbuf_to_priv(piece));
    gathered->token = outgoing.token;
    gathered->owner = this;
    gathered->shared.free_cb = payload_free;
    gathered->shared.fcb_opaque = gathered;
    rte_mbuf_ext_refcnt_set(&gathered->shared, 1);
    auto* const data = const_cast<std::uint8_t*>(outgoing.payload);
    const auto length = static_cast<std::uint16_t>(outgoing.payload_length);
    // Where a device reads this memory at all, it does so at the CPU's addresses: allow().
    rte_pktmbuf_attach_extbuf(piece, data, reinterpret_cast<rte_iova_t>(data), length, &gathered->shared);
    piece->data_off = 0;
    piece->data_len = length;
    piece->pkt_len = length;
    head->next = piece;
    head->nb_segs = 2;
    head->pkt_len += length;
    ++gathered_;
    counters_.gathered.add(1);
    return true;
  }
  if (outgoing.payload_device || rte_pktmbuf_tailroom(head) < outgoing.payload_length) return false;
  std::memcpy(outgoing.head + outgoing.head_length, outgoing.payload, outgoing.payload_length);
  counters_.copied.add(1);
  head->data_len = static_cast<std::uint16_t>(head->data_len + outgoing.payload_length);
  head->pkt_len += outgoing.payload_length;
  if (outgoing.token != 0) tokens_[token_count_++] = outgoing.token;
  return true;
}

/// On whatever thread frees the mbuf.
void MessageQueue::payload_free(void*, void* opaque) {
  const auto* gathered = static_cast<const Gathered*>(opaque);
  std::uint64_t token = gathered->token;
  (void)rte_ring_mp_enqueue_elem(gathered->owner->done_, &token, sizeof(token));
}

std::span<const std::uint64_t> MessageQueue::completed() {
  if (token_count_ == 0 && gathered_ == 0) [[likely]]
    return {};
  std::uint32_t count = token_count_;
  token_count_ = 0;
  if (gathered_ != 0) {
    const unsigned found = rte_ring_sc_dequeue_burst_elem(done_, tokens_.data() + count, sizeof(std::uint64_t),
                                                          static_cast<unsigned>(tokens_.size()) - count, nullptr);
    gathered_ -= found;
    count += found;
  }
  // Payload that nobody wants a word about has the token 0.
  const auto end = std::remove(tokens_.begin(), tokens_.begin() + count, std::uint64_t{0});
  return {tokens_.data(), static_cast<std::size_t>(end - tokens_.begin())};
}

// Where it goes.

const UdpPath* MessageQueue::path_to(const message::Outgoing& outgoing, Nanos now) {
  Way& way = way_of(outgoing);
  if (way.path.length() != 0 && way.word.good() && link_.neighbours.word(way.slot) == way.word &&
      way.path.peer() == outgoing.to) [[likely]] {
    return &way.path;
  }
  return resolve(outgoing.to, way, now);
}

const UdpPath* MessageQueue::resolve(const message::PeerAddress& peer, Way& way, Nanos now) {
  const IpAddress* const own = link_.own_address(peer);
  const std::optional<route::NeighbourKey> next = link_.next_hop(peer);
  if (own == nullptr || !next) {
    counters_.refused.add(1);
    return nullptr;
  }
  const std::uint32_t slot = link_.neighbours.find_or_add(*next, now);
  if (slot == route::NeighbourTable::kNobody) {
    counters_.unresolved.add(1);
    return nullptr;
  }
  const route::NeighbourQuestion question = link_.neighbours.use(slot, now);
  if (question.send) ask(slot, question);
  const route::NeighbourWord word = link_.neighbours.word(slot);
  const std::optional<route::NeighbourKey> still = link_.neighbours.key(slot);
  if (!word.has_mac() || !still || *still != *next) {
    counters_.unresolved.add(1);
    return nullptr;
  }
  MacAddress mac;
  const std::uint64_t bits = word.mac();
  std::memcpy(mac.bytes.data(), &bits, mac.bytes.size());
  const auto port = static_cast<std::uint16_t>(setup_.steering.first_port +
                                               (setup_.steering.own_ports ? setup_.worker : std::uint16_t{0}));
  way.path = UdpPath({link_.self.mac, mac, link_.vlan, *own, port, peer});
  way.slot = slot;
  way.word = word;
  return &way.path;
}

}  // namespace warpline::transport
