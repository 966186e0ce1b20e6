// SPDX-License-Identifier: Apache-2.0
#include "vnic/wire/ingress.h"

#include <cerrno>
#include <new>

#include "warpline/packet/headers/ethernet.h"
#include "warpline/packet/parse.h"
#include "warpline/packet/verify.h"

namespace warpline::vnic {
namespace {

/// The offload that this frame's L4 checksum needs; 0 for what none covers.
std::uint64_t l4_offload(const packet::ParsedFrame& parsed) {
  if (!packet::has_l4_checksum(parsed)) return 0;
  if (parsed.l4 == packet::L4Kind::udp) return RTE_ETH_RX_OFFLOAD_UDP_CKSUM;
  return parsed.l4 == packet::L4Kind::tcp ? RTE_ETH_RX_OFFLOAD_TCP_CKSUM : 0;
}

std::uint64_t kind_of(const packet::ParsedFrame& parsed) {
  RxL3 l3 = RxL3::none;
  if (parsed.l3 == packet::L3Kind::arp) l3 = RxL3::arp;
  if (parsed.l3 == packet::L3Kind::ipv4) l3 = RxL3::ipv4;
  if (parsed.l3 == packet::L3Kind::ipv6) l3 = RxL3::ipv6;
  RxL4 l4 = RxL4::none;
  if (parsed.l4 == packet::L4Kind::icmp || parsed.l4 == packet::L4Kind::icmpv6) l4 = RxL4::icmp;
  if (parsed.l4 == packet::L4Kind::udp) l4 = RxL4::udp;
  if (parsed.l4 == packet::L4Kind::tcp) l4 = RxL4::tcp;
  if (parsed.fragment) l4 = RxL4::fragment;
  return rx_kind(l3, l4, parsed.vlan_tags);
}

/// UDP over IPv4 may go without a checksum; then nothing was verified.
bool has_no_checksum(FrameRef frame, const packet::ParsedFrame& parsed) {
  return parsed.l4 == packet::L4Kind::udp && parsed.l3 == packet::L3Kind::ipv4 &&
         packet::load_be16(frame.data() + parsed.l4_offset + packet::UdpView::kChecksum) == 0;
}

/// The device itself summed up the very header that is checked here.
bool knows_ip(const packet::ParsedFrame& parsed, const DeviceSums& sums) {
  return sums.ip.at == parsed.l3_offset + packet::Ipv4View::kChecksum && sums.l3_length == parsed.l3_length;
}

/// It summed up the very bytes that this frame's own checksum covers, on the right pseudo header.
bool knows_l4(FrameRef frame, const packet::ParsedFrame& parsed, const DeviceSums& sums) {
  const bool same =
      sums.l4.at != 0 && sums.l4_begin == parsed.l4_offset && sums.l4_end == sums.l4_begin + packet::l4_total(parsed);
  return same && static_cast<std::uint16_t>(~packet::pseudo_header(frame, parsed).checksum()) == sums.pseudo;
}

}  // namespace

/// Which checksums of a frame need not be summed up, for the sender's device has made them of these very bytes.
struct Ingress::Known {
  bool ip = false;
  bool l4 = false;
};

int Ingress::configure(std::uint16_t queues, std::size_t buffer_bytes) {
  std::array<std::unique_ptr<PacketBuffer>, kMaxQueues> fresh;
  try {
    for (std::uint16_t i = 0; i < queues; ++i) fresh[i] = std::make_unique<PacketBuffer>(buffer_bytes);
  } catch (const std::bad_alloc&) {
    return -ENOMEM;
  }
  const Change change(*this);
  buffers_.swap(fresh);
  queues_ = queues;
  for (std::atomic<bool>& queue : queue_started) queue.store(false, std::memory_order_relaxed);
  return 0;
}

void Ingress::plan() {
  constexpr std::uint64_t kBoth = RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_UDP_CKSUM;
  steers_ = rss.fields() != 0 && (queues_ > 1 || reports_hash);
  parses_ = steers_ || reports_kind || needs_header_length || checksum_offloads != 0 || !flows.empty();
  knows_plain_ = !steers_ && !needs_header_length && flows.empty() && (checksum_offloads & kBoth) == kBoth;
}

/// False: lost, and counted.
bool Ingress::passes(FrameRef frame) {
  const auto lost = [&](Count reason) {
    counts.add(reason);
    return false;
  };
  if (!link_up.load(std::memory_order_relaxed)) [[unlikely]]
    return lost(Count::rx_link_down);
  if (!started.load(std::memory_order_relaxed)) [[unlikely]]
    return lost(Count::rx_stopped);
  if (frame.length > max_frame) [[unlikely]]
    return lost(Count::rx_giant);
  if (frame.length < packet::EthernetView::kHeaderLength) [[unlikely]]
    return lost(Count::rx_runt);
  return macs.passes(frame.data()) || lost(Count::rx_filtered);
}

/// Into the queue's packet buffer by `copy(room)`. Whatever becomes of it, it was taken.
template <typename Copy>
Ingress::Taken Ingress::store(std::uint16_t queue, const FrameInfo& info, Copy&& copy) {
  if (queue >= queues_ || !queue_started[queue].load(std::memory_order_relaxed)) [[unlikely]] {
    counts.add(Count::rx_stopped);
    return Taken::yes;
  }
  std::uint8_t* const room = buffers_[queue]->reserve(info);
  if (room == nullptr) {
    counts.add(Count::rx_no_descriptor);
    return Taken::yes;
  }
  copy(room);
  buffers_[queue]->commit();
  return Taken::yes;
}

Ingress::Taken Ingress::deliver(FrameRef frame, std::uint64_t word, std::uint64_t release_nanos) {
  if ((word & kTxSums) == 0) return take(frame, {}, true, release_nanos);
  if (knows_plain_ && is_plain_udp(frame, word)) {
    if (!passes(frame)) return Taken::yes;
    FrameInfo info{release_nanos, frame.length, 0, 0, 0, kRxIpGood | kRxL4Good};
    if (reports_kind) info.rx_flags |= rx_kind(RxL3::ipv4, RxL4::udp, 0);
    return store(0, info, [&](std::uint8_t* room) { copy_plain_udp(frame, room); });
  }
  const std::uint32_t headers = tx_l2_length(word) + tx_l3_length(word) + packet::TcpView::kHeaderLength;
  if (frame.count > 1 && frame.head_length() < headers) return Taken::unfinished;
  const DeviceSums sums = sum_up(frame, word);
  return sums.fits ? take(frame, sums, false, release_nanos) : Taken::unfit;
}

/// `stored`: of `sums` the fields in the frame are filled in.
Ingress::Taken Ingress::take(FrameRef frame, const DeviceSums& sums, bool stored, std::uint64_t release_nanos) {
  if (frame.count > 1 && frame.head_length() < packet::EthernetView::kHeaderLength) return Taken::unfinished;
  if (!passes(frame)) return Taken::yes;
  FrameInfo info{release_nanos, frame.length, 0, 0, 0, 0};
  std::uint16_t queue = 0;
  if (parses_) {
    const packet::ParsedFrame parsed = packet::parse(frame);
    if (frame.count > 1 && parsed.payload_offset > frame.head_length()) return Taken::unfinished;
    const Known known{knows_ip(parsed, sums), knows_l4(frame, parsed, sums)};
    const bool right = (known.ip || sums.ip.at == 0) && (known.l4 || sums.l4.at == 0);
    if (!stored && !right && checksum_offloads != 0) return Taken::unfinished;
    queue = choose_queue(frame, parsed, info);
    if (queue == kNoQueue) return Taken::yes;
    if (checksum_offloads != 0) info.rx_flags |= verify(frame, parsed, known);
  }
  return store(queue, info, [&](std::uint8_t* room) {
    std::uint8_t* to = room;
    for (std::uint16_t i = 0; i < frame.count; to += frame.segments[i++].length) {
      copy_bytes(to, frame.segments[i].data, frame.segments[i].length);
    }
    sums.store(room);
  });
}

/// By flow rules and RSS, with what they and the parser have to tell; kNoQueue if a rule drops the frame.
std::uint16_t Ingress::choose_queue(FrameRef frame, const packet::ParsedFrame& parsed, FrameInfo& info) {
  info.header_length = parsed.payload_offset;
  if (reports_kind) info.rx_flags |= kind_of(parsed);
  const FlowRule* rule = flows.match(frame.data(), frame.length, parsed);
  if (rule != nullptr) {
    if (rule->action.drop) {
      counts.add(Count::rx_flow_dropped);
      return kNoQueue;
    }
    if (rule->action.has_mark) {
      info.mark = rule->action.mark;
      info.rx_flags |= kRxMark;
    }
    if (rule->action.has_queue) return rule->action.queue;
  }
  if (!steers_) return 0;
  const Rss::Choice choice = rss.steer(frame.data(), parsed);
  if (choice.hashed) {
    info.hash = choice.hash;
    info.rx_flags |= kRxHash;
  }
  return choice.queue;
}

/// Flags of enum RxFlag. Bad checksums are counted; the frame goes on. Behind a bad IPv4 header L4 is
/// not looked at.
std::uint64_t Ingress::verify(FrameRef frame, const packet::ParsedFrame& parsed, const Known& known) {
  const bool ip = parsed.l3 == packet::L3Kind::ipv4 && (checksum_offloads & RTE_ETH_RX_OFFLOAD_IPV4_CKSUM) != 0;
  const bool l4 = (l4_offload(parsed) & checksum_offloads) != 0;
  if (!ip && !l4) return 0;
  // What is malformed behind the IP header does not matter to it.
  if (!known.ip && packet::verify_ip_checksum(frame, parsed) != Verdict::forward) {
    if (!ip) return 0;
    counts.add(Count::rx_bad_ip_checksum);
    return kRxIpBad;
  }
  const std::uint64_t flags = ip ? kRxIpGood : std::uint64_t{0};
  if (!l4) return flags;
  if (known.l4) return flags | kRxL4Good;
  if (packet::verify_l4_checksum(frame, parsed) != Verdict::forward) {
    counts.add(Count::rx_bad_l4_checksum);
    return flags | kRxL4Bad;
  }
  return has_no_checksum(frame, parsed) ? flags : flags | kRxL4Good;
}

}  // namespace warpline::vnic
