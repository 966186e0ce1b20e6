// SPDX-License-Identifier: Apache-2.0
// How datagrams are found in frames, and what becomes of other frames.
#include <algorithm>
#include <cstring>

#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_prefetch.h>

#include "warpline/memory/answer_mbuf.h"
#include "warpline/memory/mbuf_frame.h"
#include "warpline/packet/headers/message_header.h"
#include "warpline/packet/verify.h"
#include "warpline/port/announce/announce.h"
#include "warpline/port/port_queue.h"
#include "warpline/route/neighbour_frames.h"
#include "warpline/transport/ethdev/message_queue.h"

namespace warpline::transport {
namespace {

constexpr std::uint32_t kPlainHeaders = 42;  ///< Ethernet, IPv4 without options, UDP
constexpr std::uint16_t kVlanId = 0xfff;     ///< VLAN ID in a tag's control word
constexpr std::uint16_t kNextFrames = 4;     ///< fetched ahead

bool ip_good(const rte_mbuf* mbuf) {
  return (mbuf->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK) == RTE_MBUF_F_RX_IP_CKSUM_GOOD;
}

/// UDP's checksum was right, or (`NONE`) was left by a sender to a device that does not exist, as between a virtual
/// machine and its host: then what stands in the frame is wrong, and nothing was on a wire.
bool udp_good(const rte_mbuf* mbuf) {
  const std::uint64_t l4 = mbuf->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK;
  return l4 == RTE_MBUF_F_RX_L4_CKSUM_GOOD || l4 == RTE_MBUF_F_RX_L4_CKSUM_NONE;
}

/// Whether a frame with so many tags, the outer one's control word `tag`, is in `vlan`. Some devices take the tag off.
bool is_ours(const rte_mbuf* mbuf, std::uint8_t tags, std::uint16_t tag, const std::optional<std::uint16_t>& vlan) {
  if ((mbuf->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0 && tags == 0) {
    tags = 1;
    tag = mbuf->vlan_tci;
  }
  return vlan ? tags == 1 && (tag & kVlanId) == (*vlan & kVlanId) : tags == 0;
}

/// Verifies those checksums that the device has not, of an unfragmented datagram that is in one segment and has an IPv4
/// header of 20 bytes.
Verdict verify_plain(const rte_mbuf* mbuf, const std::uint8_t* ip, std::uint32_t udp_length) {
  if (!ip_good(mbuf)) {
    packet::ChecksumSum header;
    header.add(ip, packet::Ipv4View::kHeaderLength);
    if (header.checksum() != 0) return Verdict::ipv4_checksum;
  }
  if (udp_good(mbuf)) return Verdict::forward;
  const std::uint8_t* const udp = ip + packet::Ipv4View::kHeaderLength;
  if (packet::load_be16(udp + packet::UdpView::kChecksum) == 0) return Verdict::forward;
  packet::ChecksumSum sum = packet::pseudo_header_v4(ip + packet::Ipv4View::kSource, packet::kProtocolUdp, udp_length);
  sum.add(udp, udp_length);
  return sum.checksum() == 0 ? Verdict::forward : Verdict::udp_checksum;
}

/// Its IPv4-mapped form, in words that can be read again at once.
void set_v4(message::PeerAddress& peer, const std::uint8_t* address) {
  packet::store_be64(peer.ip.data(), 0);
  packet::store_be64(peer.ip.data() + 8, std::uint64_t{0xffff} << 32 | packet::load_be32(address));
}

}  // namespace

/// A datagram in a frame.
struct MessageQueue::Located {
  std::uint32_t payload_offset = 0;
  std::uint32_t payload_length = 0;
  std::uint16_t to_port = 0;
  bool ours = false;  ///< UDP to an address of ours; else whatever the verdict says
};

void MessageQueue::free_received() {
  rte_pktmbuf_free_bulk(received_.data(), received_count_);
  received_count_ = 0;
}

std::span<const message::Datagram> MessageQueue::receive(Nanos now) {
  if (announcer_ != nullptr && announcer_->due()) [[unlikely]]
    announcer_->send(setup_.place);
  if (received_count_ > kBurst) free_received();
  datagram_count_ = 0;
  std::array<rte_mbuf*, kBurst> burst;
  std::uint16_t handed_over = 0;
  if (!setup_.handover.empty()) {
    static_assert(kBurst - kBurst / 2 >= port::kLeastRequest, "what is handed over leaves room for the queue's own");
    handed_over = static_cast<std::uint16_t>(rte_ring_dequeue_burst(
        setup_.handover[setup_.worker], reinterpret_cast<void**>(burst.data()), kBurst / 2, nullptr));
  }
  const auto count = static_cast<std::uint16_t>(
      handed_over + rte_eth_rx_burst(setup_.place.port, setup_.place.queue, burst.data() + handed_over,
                                     static_cast<std::uint16_t>(kBurst - handed_over)));
  last_burst_ = count;
  if (unsent_at_ != unsent_end_) [[unlikely]]
    give_up(now);
  if (count == 0) {
    // Nothing to do: time to give back what was read, and to ask what has left.
    if (received_count_ != 0) free_received();
    if (gathered_ != 0) (void)rte_eth_tx_done_cleanup(setup_.place.port, setup_.place.queue, 0);
  }
  for (std::uint16_t i = 0; i < std::min(count, kNextFrames); ++i) rte_prefetch0(rte_pktmbuf_mtod(burst[i], void*));
  for (std::uint16_t i = 0; i < count; ++i) {
    if (i + kNextFrames < count) rte_prefetch0(rte_pktmbuf_mtod(burst[i + kNextFrames], void*));
    take(burst[i], i < handed_over, now);
  }
  counters_.received.add(datagram_count_);
  return {datagrams_.data(), datagram_count_};
}

/// Keeps the mbuf as long as what lies in it may be read, or gives it away.
void MessageQueue::take(rte_mbuf* mbuf, bool handed_over, Nanos now) {
  Located found;
  message::Datagram& datagram = datagrams_[datagram_count_];
  const Verdict verdict = locate(mbuf, found, datagram);
  if (is_drop(verdict)) {
    counters_.malformed.add(1);
    rte_pktmbuf_free(mbuf);
    return;
  }
  if (!found.ours) {
    control(mbuf, now);
    return;
  }
  const std::uint16_t owner =
      setup_.steering.owner(setup_.worker, found.to_port, datagram.from, endpoint_named(mbuf, found));
  if (owner == setup_.worker || (handed_over && owner < setup_.steering.workers)) [[likely]] {
    received_[received_count_++] = mbuf;
    hand_out(mbuf, found, datagram);
    return;
  }
  if (owner >= setup_.steering.workers) {
    counters_.strangers.add(1);
  } else if (rte_ring_enqueue(setup_.handover[owner], mbuf) == 0) {
    return;
  } else {
    counters_.overflow.add(1);
  }
  rte_pktmbuf_free(mbuf);
}

/// The endpoint whose session the datagram names, where there are several and one port: its peer may have another
/// address than when the session began, and come by another queue.
std::uint16_t MessageQueue::endpoint_named(const rte_mbuf* mbuf, const Located& found) const {
  const MessageSteering& steering = setup_.steering;
  constexpr std::uint32_t kNeeded = packet::MessageHeader::kSession + 1;
  if (steering.workers == 1 || steering.own_ports || found.payload_length < kNeeded ||
      mbuf->data_len < found.payload_offset + kNeeded) {
    return MessageSteering::kNoEndpoint;
  }
  const std::uint8_t* const bytes = rte_pktmbuf_mtod_offset(mbuf, const std::uint8_t*, found.payload_offset);
  const bool session = packet::MessagePrefix::check(bytes, found.payload_length) == packet::MessageParse::ok &&
                       packet::MessagePrefix::type(bytes) == packet::MessagePacketType::session;
  return session ? bytes[packet::MessageHeader::kSession] : MessageSteering::kNoEndpoint;
}

/// What lies in the frame, all checks done that are to be done before the endpoint's own. Of the datagram, whence it
/// came.
Verdict MessageQueue::locate(rte_mbuf* mbuf, Located& found, message::Datagram& datagram) const {
  const std::uint8_t* const frame = rte_pktmbuf_mtod(mbuf, const std::uint8_t*);
  const std::uint8_t* const ip = frame + packet::EthernetView::kHeaderLength;
  const bool plain = !link_.vlan && (mbuf->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) == 0 && mbuf->nb_segs == 1 &&
                     mbuf->data_len >= kPlainHeaders &&
                     packet::EthernetView(frame).ether_type() == packet::kEtherTypeIpv4 && ip[0] == 0x45 &&
                     ip[packet::Ipv4View::kProtocol] == packet::kProtocolUdp &&
                     (packet::load_be16(ip + packet::Ipv4View::kFragment) & 0x3fff) == 0;
  packet::ParsedFrame parsed;
  if (plain) {
    const std::uint32_t total = packet::load_be16(ip + packet::Ipv4View::kTotalLength);
    const std::uint32_t udp = packet::load_be16(ip + packet::Ipv4View::kHeaderLength + packet::UdpView::kLength);
    if (total > mbuf->data_len - packet::EthernetView::kHeaderLength) return Verdict::ipv4_total_length;
    if (udp < packet::UdpView::kHeaderLength || udp > total - packet::Ipv4View::kHeaderLength)
      return Verdict::udp_length;
    if (const Verdict verdict = verify_plain(mbuf, ip, udp); verdict != Verdict::forward) return verdict;
    parsed.l3 = packet::L3Kind::ipv4;
    parsed.l3_offset = packet::EthernetView::kHeaderLength;
    parsed.l4_offset = packet::EthernetView::kHeaderLength + packet::Ipv4View::kHeaderLength;
    parsed.payload_offset = kPlainHeaders;
    parsed.payload_length = udp - packet::UdpView::kHeaderLength;
  } else {
    Segment segments[kMaxSegments];
    if (memory::segments_of(mbuf, segments) == 0) return Verdict::too_many_segments;
    const FrameRef ref = frame_at(segments);
    parsed = packet::parse(ref);
    if (is_drop(parsed.verdict)) return parsed.verdict;
    const bool our_vlan = is_ours(mbuf, parsed.vlan_tags, parsed.vlan[0], link_.vlan);
    if (parsed.l4 != packet::L4Kind::udp || parsed.source_routed || !our_vlan) return Verdict::forward;
    // All headers lie in one piece as every driver delivers them; what somebody cut on purpose is not for us.
    if (ref.head_length() < parsed.payload_offset) return Verdict::forward;
    if (!ip_good(mbuf)) {
      if (const Verdict verdict = packet::verify_ip_checksum(ref, parsed); verdict != Verdict::forward) return verdict;
    }
    if (!udp_good(mbuf)) {
      if (const Verdict verdict = packet::verify_l4_checksum(ref, parsed); verdict != Verdict::forward) return verdict;
    }
  }
  const bool v4 = parsed.l3 == packet::L3Kind::ipv4;
  const std::uint8_t* const l3 = frame + parsed.l3_offset;
  const std::uint8_t* const source = l3 + (v4 ? packet::Ipv4View::kSource : packet::Ipv6View::kSource);
  found.ours = link_.is_own(l3 + (v4 ? packet::Ipv4View::kDestination : packet::Ipv6View::kDestination), v4) &&
               std::memcmp(frame, link_.self.mac.bytes.data(), link_.self.mac.bytes.size()) == 0;
  if (v4) {
    set_v4(datagram.from, source);
    datagram.ecn = l3[packet::Ipv4View::kTypeOfService] & 3;
  } else {
    std::memcpy(datagram.from.ip.data(), source, 16);
    datagram.ecn = packet::Ipv6View(l3).traffic_class() & 3;
  }
  datagram.from.port = packet::load_be16(frame + parsed.l4_offset + packet::UdpView::kSourcePort);
  found.to_port = packet::load_be16(frame + parsed.l4_offset + packet::UdpView::kDestinationPort);
  found.payload_offset = parsed.payload_offset;
  found.payload_length = parsed.payload_length;
  return Verdict::forward;
}

/// As at most two pieces, the first of which holds a whole head.
void MessageQueue::hand_out(rte_mbuf* mbuf, const Located& found, message::Datagram& datagram) {
  datagram.head = rte_pktmbuf_mtod_offset(mbuf, std::uint8_t*, found.payload_offset);
  const std::uint32_t whole = found.payload_length;
  const std::uint32_t have = std::min(mbuf->data_len - found.payload_offset, whole);
  const std::uint32_t need = std::min(message::kMaxHeadBytes, whole);
  datagram.head_length = have;
  datagram.rest = nullptr;
  datagram.rest_length = 0;
  datagram.rest_device = false;
  if (have < whole) {
    rte_mbuf* const second = mbuf->next;
    const std::uint32_t missing = have < need ? need - have : 0;
    const bool two = mbuf->nb_segs == 2 && second->data_len >= whole - have &&
                     (missing == 0 || (rte_pktmbuf_tailroom(mbuf) >= missing && RTE_MBUF_DIRECT(mbuf)));
    if (two) {
      auto* const rest = rte_pktmbuf_mtod(second, std::uint8_t*);
      std::memcpy(datagram.head + have, rest, missing);
      datagram.head_length = have + missing;
      datagram.rest = rest + missing;
      datagram.rest_length = whole - datagram.head_length;
    } else if (whole <= setup_.datagram_bytes) {
      std::uint8_t* const slot = scratch_.data() + std::size_t{datagram_count_} * setup_.datagram_bytes;
      const void* const bytes = rte_pktmbuf_read(mbuf, found.payload_offset, whole, slot);
      if (bytes != slot) std::memcpy(slot, bytes, whole);
      datagram.head = slot;
      datagram.head_length = whole;
    } else {
      counters_.truncated.add(1);
      return;
    }
  }
  ++datagram_count_;
}

/// Answers what is asked of us, learns what is told, and gives the mbuf away.
void MessageQueue::control(rte_mbuf* mbuf, Nanos now) {
  // Neighbours are known without tags: ours comes off, and on again for the answer.
  const bool tagged = (mbuf->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0 || rte_vlan_strip(mbuf) == 0;
  const bool our_vlan = is_ours(mbuf, tagged ? 1 : 0, mbuf->vlan_tci, link_.vlan);
  bool learned = false;
  if (our_vlan) {
    Segment segments[kMaxSegments];
    memory::segments_of(mbuf, segments);
    const FrameRef frame = frame_at(segments);
    const packet::ParsedFrame parsed = packet::parse(frame);
    if (const auto news = route::neighbour_news(frame, parsed, link_.self)) {
      learned = news->is_for(link_.neighbours, 0);
      if (learned) link_.neighbours.learn(route::NeighbourKey::of(0, news->address), news->evidence, now);
    }
    const bool query = packet::Responder::is_listener_query(frame, parsed);
    if (query) report_groups(mbuf);
    learned = learned || query;
    for (const packet::Responder& responder : link_.responders) {
      if (query || !memory::answer(responder, frame, parsed, mbuf)) continue;
      mbuf->ol_flags = 0;
      if (send_control(mbuf)) counters_.answered.add(1);
      return;
    }
  }
  if (!learned) counters_.strangers.add(1);
  rte_pktmbuf_free(mbuf);
}

/// Sends a report for each group of the port, in answer to a query.
void MessageQueue::report_groups(const rte_mbuf* query) {
  const auto& all = link_.responders;
  for (auto responder = all.begin(); responder != all.end(); ++responder) {
    const auto same = [&](const packet::Responder& other) { return other.same_group(*responder); };
    if (std::any_of(all.begin(), responder, same)) continue;
    rte_mbuf* const report = rte_pktmbuf_copy(query, setup_.pool, 0, UINT32_MAX);
    if (report == nullptr) return;  // the querier asks again
    Segment segments[kMaxSegments];
    if (memory::segments_of(report, segments) == 0 || !responder->answer(frame_at(segments))) {
      rte_pktmbuf_free(report);
      continue;
    }
    report->ol_flags = 0;
    if (send_control(report)) counters_.answered.add(1);
  }
}

/// Takes the mbuf in any case.
bool MessageQueue::send_control(rte_mbuf* mbuf) {
  mbuf->vlan_tci = link_.vlan.value_or(0);
  const bool ready = !link_.vlan || rte_vlan_insert(&mbuf) == 0;
  if (ready && rte_eth_tx_burst(setup_.place.port, setup_.place.queue, &mbuf, 1) == 1) return true;
  rte_pktmbuf_free(mbuf);
  return false;
}

void MessageQueue::ask(std::uint32_t slot, const route::NeighbourQuestion& question) {
  const std::optional<route::NeighbourKey> key = link_.neighbours.key(slot);
  if (!key) return;
  const IpAddress target = key->ip();
  const std::optional<IpAddress> source = route::asking_address(link_.self, target);
  rte_mbuf* request = source ? rte_pktmbuf_alloc(setup_.pool) : nullptr;
  if (request == nullptr) return;
  auto* const bytes = rte_pktmbuf_mtod(request, std::uint8_t*);
  const std::uint32_t length = route::write_neighbour_request({bytes, route::kNeighbourRequestLength}, link_.self.mac,
                                                              *source, target, question.to);
  // The shortest frame of Ethernet, which not every device pads to.
  const auto padded =
      static_cast<std::uint16_t>(std::max<std::uint32_t>(length, RTE_ETHER_MIN_LEN - RTE_ETHER_CRC_LEN));
  std::memset(bytes + length, 0, padded - length);
  request->data_len = padded;
  request->pkt_len = padded;
  (void)send_control(request);
}

}  // namespace warpline::transport
