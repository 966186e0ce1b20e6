// SPDX-License-Identifier: Apache-2.0
#include "warpline/router/route_lcore.h"

#include <algorithm>
#include <array>

#include "warpline/base/clock.h"
#include "warpline/memory/mbuf_frame.h"
#include "warpline/route/prefix.h"

namespace warpline {
namespace {

constexpr std::uint32_t kEthernet = EthernetView::kHeaderLength;
constexpr Nanos kResolvePatience{4'000'000'000};  // a neighbour has failed by then
constexpr Nanos kLookEvery{100'000'000};          // at packets that wait
constexpr std::uint32_t kErrorBurst = 64;         // errors at once,
constexpr Nanos kErrorInterval{1'000'000};        // and a thousand a second (RFC 1812, 4.3.2.8; RFC 4443, 2.4(f))

std::uint8_t* bytes_of(rte_mbuf* mbuf) { return rte_pktmbuf_mtod(mbuf, std::uint8_t*); }

bool is_v4_frame(const std::uint8_t* frame) { return EthernetView(frame).ether_type() == kEtherTypeIpv4; }

IpAddress destination_of(const std::uint8_t* frame, bool v4) {
  const std::uint8_t* ip = frame + kEthernet;
  if (v4) return load_address<Ipv4Address>(ip + Ipv4View::kDestination);
  return load_address<Ipv6Address>(ip + Ipv6View::kDestination);
}

/// A frame and its pieces.
struct Pieces {
  explicit Pieces(rte_mbuf* mbuf) : count(segments_of(mbuf, segments.data())), length(rte_pktmbuf_pkt_len(mbuf)) {}
  [[nodiscard]] FrameRef ref() { return {segments.data(), count, length}; }

  std::array<Segment, kMaxSegments> segments;
  std::uint16_t count;
  std::uint32_t length;
};

}  // namespace

RouteLcore::RouteLcore(const std::vector<RoutePort>& ports, const std::vector<QueuePath*>& paths,
                       NeighbourTable& neighbours)
    : own_(ports), neighbours_(neighbours), errors_(kErrorBurst, kErrorInterval) {
  ports_.reserve(ports.size());
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const RouterPort& own = ports[i].own;
    ports_.push_back(Port{.rewrite = HopRewrite(own.mac),
                          .plain = PlainFrames(own.mac),
                          .plain_burst = PlainBurst(own.mac),
                          .max_frame = own.mtu + kEthernet,
                          .sending = ports[i].sending,
                          .own = &own,
                          .path = paths[i],
                          .on_link = {},
                          .routed = {},
                          .egress = Egress(*paths[i])});
    for (std::size_t other = 0; other < ports.size(); ++other) {
      for (const InterfaceAddress& address : ports[other].own.addresses) {
        ports_[i].routed.emplace_back(own.mac, address);
        if (other == i) ports_[i].on_link.emplace_back(own.mac, address);
      }
    }
  }
}

L3Kind RouteLcore::examine(std::uint16_t rx_port, rte_mbuf* mbuf) {
  const auto done = [&](Verdict reason) {
    drop(rx_port, mbuf, reason);
    return L3Kind::none;
  };
  Pieces pieces(mbuf);
  if (pieces.count == 0) return done(Verdict::too_many_segments);
  const FrameRef frame = pieces.ref();
  const ParsedFrame parsed = parse(frame);
  if (is_drop(parsed.verdict)) return done(parsed.verdict);
  if (frame.head_length() < kEthernet) return done(Verdict::runt);
  const Port& port = ports_[rx_port];
  const EthernetView ethernet(frame.data());
  const bool to_group = (ethernet.destination()[0] & 1) != 0;
  if (!to_group && load_address<MacAddress>(ethernet.destination()) != port.own->mac)
    return done(Verdict::other_station);
  if (parsed.vlan_tags != 0 || parsed.l3 == L3Kind::none) return done(Verdict::not_routed);
  if (to_group || parsed.l3 == L3Kind::arp) {
    // What comes to a group of stations is not passed on (RFC 1812, 5.3.4).
    return take(rx_port, mbuf, frame, parsed, port.on_link) ? L3Kind::none : done(Verdict::no_listener);
  }
  if (parsed.source_routed) return done(Verdict::not_routed);
  const std::uint8_t* ip = frame.data() + kEthernet;
  if (parsed.l3 == L3Kind::ipv4) {
    if (frame.head_length() < kEthernet + parsed.l3_length) return done(Verdict::ipv4_truncated);
    if (checksum(ip, parsed.l3_length) != 0) return done(Verdict::ipv4_checksum);
    if (!is_host(load_address<Ipv4Address>(ip + Ipv4View::kSource))) return done(Verdict::martian);
    return L3Kind::ipv4;
  }
  if (frame.head_length() < kEthernet + Ipv6View::kHeaderLength) return done(Verdict::ipv6_truncated);
  const auto source = load_address<Ipv6Address>(ip + Ipv6View::kSource);
  if (is_link_local(source) && is_own(destination_of(frame.data(), false))) {
    deliver(rx_port, mbuf);
    return L3Kind::none;
  }
  // Link-local sources stay on their link (RFC 4291, 2.5.6).
  return is_host(source) ? L3Kind::ipv6 : done(Verdict::martian);
}

void RouteLcore::pass_on(std::uint16_t rx_port, rte_mbuf* mbuf, Hop hop, bool v4) {
  switch (hop.kind) {
    case HopKind::none:
      return refuse(rx_port, mbuf, Verdict::no_route, IcmpReason::no_route);
    case HopKind::martian:
      return drop(rx_port, mbuf, Verdict::martian);
    case HopKind::local:
      return deliver(rx_port, mbuf);
    case HopKind::on_link:
    case HopKind::gateway:
      break;
  }
  const std::uint8_t* frame = bytes_of(mbuf);
  const std::uint8_t hops_left = frame[kEthernet + (v4 ? Ipv4View::kTimeToLive : Ipv6View::kHopLimit)];
  if (hops_left <= 1) return refuse(rx_port, mbuf, Verdict::ttl_expired, IcmpReason::time_exceeded);
  const Port& out = ports_[hop.port];
  if (rte_pktmbuf_pkt_len(mbuf) > out.max_frame) {
    return refuse(rx_port, mbuf, Verdict::giant, IcmpReason::too_big, out.own->mtu);
  }
  if (hop.kind == HopKind::gateway) return to_neighbour(rx_port, mbuf, hop.port, hop.neighbour);
  const NeighbourKey key = NeighbourKey::of(hop.port, destination_of(frame, v4));
  const std::uint32_t known = neighbours_.find(key);
  if (neighbours_.word(known).good()) return send(mbuf, hop.port, neighbours_.word(known).mac());
  to_neighbour(rx_port, mbuf, hop.port,
               known != NeighbourTable::kNobody ? known : neighbours_.find_or_add(key, router_now()));
}

/// `neighbour` may be anything but good.
void RouteLcore::to_neighbour(std::uint16_t rx_port, rte_mbuf* mbuf, std::uint16_t tx_port, std::uint32_t neighbour) {
  const Nanos time = router_now();
  const NeighbourQuestion question = neighbours_.use(neighbour, time);
  if (question.send) {
    if (const auto key = neighbours_.key(neighbour)) ask(*key, question);
  }
  const NeighbourWord word = neighbours_.word(neighbour);
  if (word.has_mac()) return send(mbuf, tx_port, word.mac());
  if (word.state() == NeighbourState::failed) {
    return refuse(rx_port, mbuf, Verdict::neighbour_unresolved, IcmpReason::host_unreachable);
  }
  const Nanos until{time.value + kResolvePatience.value};
  if (word.state() == NeighbourState::none ||
      !waiting_.enter({mbuf, neighbour, word.generation(), rx_port, tx_port, until})) {
    drop(rx_port, mbuf, Verdict::neighbour_unresolved);
  }
}

/// It has been checked for all but this: nothing stops it any more.
void RouteLcore::send(rte_mbuf* mbuf, std::uint16_t tx_port, std::uint64_t mac) {
  Port& out = ports_[tx_port];
  std::uint8_t* frame = bytes_of(mbuf);
  if (is_v4_frame(frame)) {
    HopRewrite::live_less_v4(frame + kEthernet);
  } else {
    HopRewrite::live_less_v6(frame + kEthernet);
  }
  out.rewrite.stations(frame, mac);
  out.egress.push(mbuf, rte_pktmbuf_pkt_len(mbuf));
}

void RouteLcore::ask(const NeighbourKey& key, const NeighbourQuestion& question) {
  Port& port = ports_[key.port];
  const IpAddress target = key.ip();
  const std::optional<IpAddress> source = asking_address(*port.own, target);
  rte_mbuf* mbuf = source ? rte_pktmbuf_alloc(port.sending) : nullptr;
  if (mbuf == nullptr) return;  // it is asked again at the next use
  const std::uint32_t length =
      write_neighbour_request({bytes_of(mbuf), kNeighbourRequestLength}, port.own->mac, *source, target, question.to);
  rte_pktmbuf_append(mbuf, static_cast<std::uint16_t>(length));
  counters_.requests.add(1);
  counters_.generated_packets.add(1);
  counters_.generated_bytes.add(length);
  port.egress.push(mbuf, length);
}

void RouteLcore::call_waiting() {
  const Nanos time = router_now();
  const std::uint32_t events = neighbours_.events();
  if (events == events_seen_ && time < look_again_) return;
  events_seen_ = events;
  look_again_ = {time.value + kLookEvery.value};
  waiting_.call([&](const Waiting& packet) {
    const NeighbourWord word = neighbours_.word(packet.neighbour);
    const bool same = word.generation() == packet.generation;
    if (same && word.has_mac()) {
      send(packet.mbuf, packet.tx_port, word.mac());
      return true;
    }
    if (same && word.state() == NeighbourState::incomplete && time < packet.until) {
      const NeighbourQuestion question = neighbours_.use(packet.neighbour, time);
      const auto key = question.send ? neighbours_.key(packet.neighbour) : std::nullopt;
      if (key) ask(*key, question);
      return false;
    }
    refuse(packet.rx_port, packet.mbuf, Verdict::neighbour_unresolved, IcmpReason::host_unreachable);
    return true;
  });
}

bool RouteLcore::take(std::uint16_t rx_port, rte_mbuf* mbuf, FrameRef frame, const ParsedFrame& parsed,
                      const std::vector<Responder>& responders) {
  const std::optional<NeighbourNews> news = neighbour_news(frame, parsed, *ports_[rx_port].own);
  if (news) neighbours_.learn(NeighbourKey::of(rx_port, news->address), news->evidence, router_now());
  const std::uint32_t length = rte_pktmbuf_pkt_len(mbuf);
  for (const Responder& responder : responders) {
    if (!responder.answer(frame, parsed)) continue;
    ports_[rx_port].path->sent.replies.add(1);
    ports_[rx_port].egress.push(mbuf, length);
    return true;
  }
  if (!news) return false;
  counters_.delivered_packets.add(1);
  counters_.delivered_bytes.add(length);
  rte_pktmbuf_free(mbuf);
  return true;
}

/// An IP packet to one of the router's addresses.
void RouteLcore::deliver(std::uint16_t rx_port, rte_mbuf* mbuf) {
  Pieces pieces(mbuf);
  const FrameRef frame = pieces.ref();
  const ParsedFrame parsed = parse(frame);
  if (is_drop(parsed.verdict)) return drop(rx_port, mbuf, parsed.verdict);
  if (take(rx_port, mbuf, frame, parsed, ports_[rx_port].routed)) return;
  if (parsed.l4 != L4Kind::udp && parsed.l4 != L4Kind::tcp) return drop(rx_port, mbuf, Verdict::no_listener);
  refuse(rx_port, mbuf, Verdict::no_listener, IcmpReason::port_unreachable);
}

void RouteLcore::drop(std::uint16_t rx_port, rte_mbuf* mbuf, Verdict reason) {
  ports_[rx_port].path->sent.drops.add(reason);
  rte_pktmbuf_free(mbuf);
}

void RouteLcore::refuse(std::uint16_t rx_port, rte_mbuf* mbuf, Verdict verdict, IcmpReason reason, std::uint16_t mtu) {
  if (!turn_into_error(rx_port, mbuf, reason, mtu)) return drop(rx_port, mbuf, verdict);
  ports_[rx_port].path->sent.drops.add(verdict);
  const std::uint32_t length = rte_pktmbuf_pkt_len(mbuf);
  counters_.errors.add(1);
  counters_.generated_packets.add(1);
  counters_.generated_bytes.add(length);
  ports_[rx_port].egress.push(mbuf, length);
}

bool RouteLcore::turn_into_error(std::uint16_t rx_port, rte_mbuf* mbuf, IcmpReason reason, std::uint16_t mtu) {
  Pieces pieces(mbuf);
  const FrameRef frame = pieces.ref();
  const ParsedFrame parsed = parse(frame);
  if (!may_send_icmp_error(frame, parsed, reason) || !errors_.take(router_now())) return false;
  const Port& port = ports_[rx_port];
  std::uint8_t* ethernet = frame.data();
  std::uint8_t* datagram = ethernet + parsed.l3_offset;
  const bool v4 = parsed.l3 == L3Kind::ipv4;
  const IpAddress sender = v4 ? IpAddress{load_address<Ipv4Address>(datagram + Ipv4View::kSource)}
                              : IpAddress{load_address<Ipv6Address>(datagram + Ipv6View::kSource)};
  const std::optional<IpAddress> own = asking_address(*port.own, sender);
  const auto more = static_cast<std::uint16_t>((v4 ? kIcmpV4ErrorHeaders : kIcmpV6ErrorHeaders) - kEthernet);
  const bool ours_alone = RTE_MBUF_DIRECT(mbuf) && rte_mbuf_refcnt_read(mbuf) == 1;
  if (!own || !ours_alone || rte_pktmbuf_headroom(mbuf) < more) return false;
  const auto station = load_address<MacAddress>(ethernet + EthernetView::kSource);
  const std::uint32_t kept =
      write_icmp_error({reason, port.own->mac, station, *own, mtu}, datagram, frame.head_length() - parsed.l3_offset);
  rte_pktmbuf_free(mbuf->next);
  mbuf->next = nullptr;
  mbuf->nb_segs = 1;
  mbuf->data_off = static_cast<std::uint16_t>(mbuf->data_off - more);
  mbuf->data_len = static_cast<std::uint16_t>(kEthernet + more + kept);
  mbuf->pkt_len = mbuf->data_len;
  return true;
}

bool RouteLcore::is_own(const IpAddress& address) const {
  return std::ranges::any_of(own_, [&](const RoutePort& port) {
    const auto& addresses = port.own.addresses;
    return std::ranges::find(addresses, address, &InterfaceAddress::address) != addresses.end();
  });
}

void RouteLcore::end() {
  waiting_.call([&](const Waiting& packet) {
    drop(packet.rx_port, packet.mbuf, Verdict::neighbour_unresolved);
    return true;
  });
  for (Port& port : ports_) port.egress.flush();
}

}  // namespace warpline
