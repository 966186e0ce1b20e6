// SPDX-License-Identifier: Apache-2.0
#include "ingress.h"

#include <cerrno>
#include <new>

#include "packet/ethernet.h"
#include "packet/parse.h"
#include "packet/verify.h"

namespace warpline::vnic {
namespace {

/// The offload that this frame's L4 checksum needs; 0 for what none covers.
std::uint64_t l4_offload(const ParsedFrame& parsed) {
  if (!has_l4_checksum(parsed)) return 0;
  if (parsed.l4 == L4Kind::udp) return RTE_ETH_RX_OFFLOAD_UDP_CKSUM;
  return parsed.l4 == L4Kind::tcp ? RTE_ETH_RX_OFFLOAD_TCP_CKSUM : 0;
}

std::uint64_t kind_of(const ParsedFrame& parsed) {
  RxL3 l3 = RxL3::none;
  if (parsed.l3 == L3Kind::arp) l3 = RxL3::arp;
  if (parsed.l3 == L3Kind::ipv4) l3 = RxL3::ipv4;
  if (parsed.l3 == L3Kind::ipv6) l3 = RxL3::ipv6;
  RxL4 l4 = RxL4::none;
  if (parsed.l4 == L4Kind::icmp || parsed.l4 == L4Kind::icmpv6) l4 = RxL4::icmp;
  if (parsed.l4 == L4Kind::udp) l4 = RxL4::udp;
  if (parsed.l4 == L4Kind::tcp) l4 = RxL4::tcp;
  if (parsed.fragment) l4 = RxL4::fragment;
  return rx_kind(l3, l4, parsed.vlan_tags);
}

/// UDP over IPv4 may go without a checksum; then nothing was verified.
bool has_no_checksum(FrameRef frame, const ParsedFrame& parsed) {
  return parsed.l4 == L4Kind::udp && parsed.l3 == L3Kind::ipv4 &&
         load_be16(frame.data() + parsed.l4_offset + UdpView::kChecksum) == 0;
}

/// The sender's device summed up the very bytes that its own checksum covers here, on the right pseudo header.
bool filled_in_right(FrameRef frame, const ParsedFrame& parsed, const FilledIn& sums) {
  if (sums.l4 == 0 || sums.l4 != parsed.l4_offset || sums.end != sums.l4 + l4_total(parsed)) return false;
  const std::uint16_t complement = pseudo_header(frame, parsed).checksum();
  return static_cast<std::uint16_t>(~complement) == sums.pseudo;
}

}  // namespace

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
  steers_ = rss.fields() != 0 && (queues_ > 1 || reports_hash);
  parses_ = steers_ || reports_kind || needs_header_length || checksum_offloads != 0 || !flows.empty();
}

void Ingress::deliver(const std::uint8_t* frame, std::uint32_t length, std::uint64_t release_nanos,
                      const FilledIn& sums) {
  if (!link_up.load(std::memory_order_relaxed)) [[unlikely]]
    return counts.add(Count::rx_link_down);
  if (!started.load(std::memory_order_relaxed)) [[unlikely]]
    return counts.add(Count::rx_stopped);
  if (length > max_frame) [[unlikely]]
    return counts.add(Count::rx_giant);
  if (length < EthernetView::kHeaderLength) [[unlikely]]
    return counts.add(Count::rx_runt);
  if (!macs.passes(frame)) return counts.add(Count::rx_filtered);

  FrameInfo info{release_nanos, length, 0, 0, 0, 0};
  if (parses_) return deliver_parsed(frame, length, info, sums);
  push(0, info, frame);
}

void Ingress::deliver_parsed(const std::uint8_t* frame, std::uint32_t length, FrameInfo& info, const FilledIn& sums) {
  Segment segment{const_cast<std::uint8_t*>(frame), length, 0, Verdict::forward};  // only read
  const FrameRef whole{&segment, 1, length};
  const ParsedFrame parsed = parse(whole);
  info.header_length = parsed.payload_offset;
  if (reports_kind) info.rx_flags |= kind_of(parsed);
  if (checksum_offloads != 0) info.rx_flags |= verify(whole, parsed, sums);

  const FlowRule* rule = flows.match(frame, length, parsed);
  if (rule != nullptr) {
    if (rule->action.drop) return counts.add(Count::rx_flow_dropped);
    if (rule->action.has_mark) {
      info.mark = rule->action.mark;
      info.rx_flags |= kRxMark;
    }
    if (rule->action.has_queue) return push(rule->action.queue, info, frame);
  }
  if (!steers_) return push(0, info, frame);
  const Rss::Choice choice = rss.steer(frame, parsed);
  if (choice.hashed) {
    info.hash = choice.hash;
    info.rx_flags |= kRxHash;
  }
  push(choice.queue, info, frame);
}

/// Flags of enum RxFlag. Bad checksums are counted; the frame goes on. Behind a bad IPv4 header L4 is not looked at.
std::uint64_t Ingress::verify(FrameRef frame, ParsedFrame parsed, const FilledIn& sums) {
  const bool ip = parsed.l3 == L3Kind::ipv4 && (checksum_offloads & RTE_ETH_RX_OFFLOAD_IPV4_CKSUM) != 0;
  const bool l4 = (l4_offload(parsed) & checksum_offloads) != 0;
  if (!ip && !l4) return 0;
  const bool known = l4 && filled_in_right(frame, parsed, sums);
  if (!l4 || known) parsed.l4 = L4Kind::none;
  parsed.verdict = Verdict::forward;  // what is malformed behind the IP header does not matter to it
  const Verdict verdict = verify_checksums(frame, parsed);
  if (verdict == Verdict::ipv4_checksum) {
    if (!ip) return 0;
    counts.add(Count::rx_bad_ip_checksum);
    return kRxIpBad;
  }
  std::uint64_t flags = ip ? kRxIpGood : std::uint64_t{0};
  if (is_drop(verdict)) {
    counts.add(Count::rx_bad_l4_checksum);
    flags |= kRxL4Bad;
  } else if (known || (l4 && !has_no_checksum(frame, parsed))) {
    flags |= kRxL4Good;
  }
  return flags;
}

void Ingress::push(std::uint16_t queue, const FrameInfo& info, const std::uint8_t* frame) {
  if (queue >= queues_ || !queue_started[queue].load(std::memory_order_relaxed)) [[unlikely]]
    return counts.add(Count::rx_stopped);
  if (!buffers_[queue]->push(info, frame)) counts.add(Count::rx_no_descriptor);
}

}  // namespace warpline::vnic
