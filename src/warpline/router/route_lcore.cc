// SPDX-License-Identifier: Apache-2.0
#include "warpline/router/route_lcore.h"

#include <algorithm>
#include <array>

#include "warpline/base/time/clock.h"
#include "warpline/datapath/capture/capture_mbuf.h"
#include "warpline/memory/answer_mbuf.h"
#include "warpline/memory/mbuf_frame.h"
#include "warpline/route/prefix.h"

namespace warpline::router {
namespace {

constexpr std::uint32_t kEthernet = packet::EthernetView::kHeaderLength;
constexpr Nanos kResolvePatience{4'000'000'000};  // a neighbour has failed by then
constexpr Nanos kLookEvery{100'000'000};          // at packets that wait
// Requests for neighbours, of one lcore by one port: at once, and two thousand a second. A scan of a large link costs
// no more broadcasts than that (RFC 6583, 7).
constexpr std::uint32_t kRequestBurst = 512;
constexpr Nanos kRequestInterval{500'000};
constexpr std::uint32_t kErrorBurst = 64;   // errors at once,
constexpr Nanos kErrorInterval{1'000'000};  // and a thousand a second (RFC 1812, 4.3.2.8; RFC 4443, 2.4(f))

std::uint8_t* bytes_of(rte_mbuf* mbuf) { return rte_pktmbuf_mtod(mbuf, std::uint8_t*); }

bool is_v4_frame(const std::uint8_t* frame) {
  return packet::EthernetView(frame).ether_type() == packet::kEtherTypeIpv4;
}

IpAddress destination_of(const std::uint8_t* frame, bool v4) {
  const std::uint8_t* ip = frame + kEthernet;
  if (v4) return packet::load_address<Ipv4Address>(ip + packet::Ipv4View::kDestination);
  return packet::load_address<Ipv6Address>(ip + packet::Ipv6View::kDestination);
}

/// Whether it is ARP, a neighbour solicitation or an advertisement.
bool is_neighbour_message(FrameRef frame, const packet::ParsedFrame& parsed) {
  if (parsed.l3 == packet::L3Kind::arp) return true;
  if (parsed.l4 != packet::L4Kind::icmpv6 || frame.head_length() <= parsed.l4_offset) return false;
  const std::uint8_t type = frame.data()[parsed.l4_offset];
  return type == packet::kNeighbourSolicitation || type == packet::kNeighbourAdvertisement;
}

/// A frame and its pieces.
struct Pieces {
  explicit Pieces(rte_mbuf* mbuf)
      : count(memory::segments_of(mbuf, segments.data())), length(rte_pktmbuf_pkt_len(mbuf)) {}
  [[nodiscard]] FrameRef ref() { return {segments.data(), count, length}; }

  std::array<Segment, kMaxSegments> segments;
  std::uint16_t count;
  std::uint32_t length;
};

}  // namespace

RouteLcore::RouteLcore(const std::vector<RoutePort>& ports, const std::vector<datapath::QueuePath*>& paths,
                       route::NeighbourTable& neighbours)
    : own_(ports), neighbours_(neighbours), errors_(kErrorBurst, kErrorInterval) {
  ports_.reserve(ports.size());
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const route::RouterPort& own = ports[i].own;
    ports_.push_back(Port{.rewrite = route::HopRewrite(own.mac),
                          .plain = route::PlainFrames(own.mac),
                          .plain_burst = PlainBurst(own.mac),
                          .max_frame = own.mtu + kEthernet,
                          .sending = ports[i].sending,
                          .own = &own,
                          .path = paths[i],
                          .on_link = {},
                          .routed = {},
                          .egress = Egress(*paths[i]),
                          .unknown = {kRequestBurst, kRequestInterval},
                          .known = {kRequestBurst, kRequestInterval},
                          .slow = {kSlowBurst, Nanos{1}},
                          .neighbour_messages = {kSlowBurst, Nanos{1}}});
    packet::ResponderSettings answers{.router = true, .reporter = packet::reporter_of(own.addresses)};
    for (std::size_t other = 0; other < ports.size(); ++other) {
      for (const InterfaceAddress& address : ports[other].own.addresses) {
        ports_[i].routed.emplace_back(own.mac, address, answers);
      }
    }
    for (std::size_t address = 0; address < own.addresses.size(); ++address) {
      answers.watch = address < ports[i].watches.size() ? &ports[i].watches[address] : nullptr;
      ports_[i].on_link.emplace_back(own.mac, own.addresses[address], answers);
    }
  }
}

packet::L3Kind RouteLcore::examine(std::uint16_t rx_port, rte_mbuf* mbuf) {
  const auto done = [&](Verdict reason) {
    drop(rx_port, mbuf, reason);
    return packet::L3Kind::none;
  };
  Pieces pieces(mbuf);
  if (pieces.count == 0) return done(Verdict::too_many_segments);
  const FrameRef frame = pieces.ref();
  const packet::ParsedFrame parsed = packet::parse(frame);
  if (is_drop(parsed.verdict)) return done(parsed.verdict);
  if (frame.head_length() < kEthernet) return done(Verdict::runt);
  const Port& port = ports_[rx_port];
  const packet::EthernetView ethernet(frame.data());
  const bool to_group = (ethernet.destination()[0] & 1) != 0;
  if (!to_group && packet::load_address<MacAddress>(ethernet.destination()) != port.own->mac)
    return done(Verdict::other_station);
  if (parsed.vlan_tags != 0 || parsed.l3 == packet::L3Kind::none) return done(Verdict::not_routed);
  if (to_group || parsed.l3 == packet::L3Kind::arp) {
    // What comes to a group of stations is not passed on (RFC 1812, 5.3.4).
    return take(rx_port, mbuf, frame, parsed, port.on_link) ? packet::L3Kind::none : done(Verdict::no_listener);
  }
  if (parsed.source_routed) return done(Verdict::not_routed);
  const std::uint8_t* ip = frame.data() + kEthernet;
  if (parsed.l3 == packet::L3Kind::ipv4) {
    if (frame.head_length() < kEthernet + parsed.l3_length) return done(Verdict::ipv4_truncated);
    if (packet::checksum(ip, parsed.l3_length) != 0) return done(Verdict::ipv4_checksum);
    if (!route::is_host(packet::load_address<Ipv4Address>(ip + packet::Ipv4View::kSource)))
      return done(Verdict::martian);
    return packet::L3Kind::ipv4;
  }
  if (frame.head_length() < kEthernet + packet::Ipv6View::kHeaderLength) return done(Verdict::ipv6_truncated);
  const auto source = packet::load_address<Ipv6Address>(ip + packet::Ipv6View::kSource);
  if (route::is_link_local(source) && is_own(destination_of(frame.data(), false))) {
    deliver(rx_port, mbuf);
    return packet::L3Kind::none;
  }
  // Link-local sources stay on their link (RFC 4291, 2.5.6).
  return route::is_host(source) ? packet::L3Kind::ipv6 : done(Verdict::martian);
}

void RouteLcore::pass_on(std::uint16_t rx_port, rte_mbuf* mbuf, Hop hop, bool v4) {
  switch (hop.kind) {
    case route::HopKind::none:
      return refuse(rx_port, mbuf, Verdict::no_route, route::IcmpReason::no_route);
    case route::HopKind::martian:
      return drop(rx_port, mbuf, Verdict::martian);
    case route::HopKind::local:
      return deliver(rx_port, mbuf);
    case route::HopKind::on_link:
    case route::HopKind::gateway:
      break;
  }
  const std::uint8_t* frame = bytes_of(mbuf);
  const std::uint8_t hops_left = frame[kEthernet + (v4 ? packet::Ipv4View::kTimeToLive : packet::Ipv6View::kHopLimit)];
  if (hops_left <= 1) return refuse(rx_port, mbuf, Verdict::ttl_expired, route::IcmpReason::time_exceeded);
  const Port& out = ports_[hop.port];
  if (rte_pktmbuf_pkt_len(mbuf) > out.max_frame) {
    return refuse(rx_port, mbuf, Verdict::giant, route::IcmpReason::too_big, out.own->mtu);
  }
  const bool by_gateway = hop.kind == route::HopKind::gateway;
  const route::NeighbourKey key = route::NeighbourKey::of(hop.port, destination_of(frame, v4));
  std::uint32_t neighbour = by_gateway ? hop.neighbour : neighbours_.find(key);
  const route::NeighbourWord word = neighbours_.word(neighbour);
  if (word.has_mac()) {
    if (!word.good()) use(neighbour, hop.port, router_now());
    return send(mbuf, hop.port, word.mac());
  }
  if (!ports_[rx_port].slow.take(slow_now())) return drop(rx_port, mbuf, Verdict::slow_path_full);
  // A neighbour that cannot be asked for now takes no place in the table.
  const Nanos time = router_now();
  if (neighbour == route::NeighbourTable::kNobody && !by_gateway && ports_[hop.port].unknown.has(time)) {
    neighbour = neighbours_.find_or_add(key, time);
  }
  wait_for(rx_port, mbuf, hop.port, neighbour);
}

/// Sends it if `neighbour`, which had no MAC address, has got one; else it waits.
void RouteLcore::wait_for(std::uint16_t rx_port, rte_mbuf* mbuf, std::uint16_t tx_port, std::uint32_t neighbour) {
  const Nanos time = router_now();
  use(neighbour, tx_port, time);
  const route::NeighbourWord word = neighbours_.word(neighbour);
  if (word.has_mac()) return send(mbuf, tx_port, word.mac());
  if (word.state() == route::NeighbourState::failed) {
    return refuse(rx_port, mbuf, Verdict::neighbour_unresolved, route::IcmpReason::host_unreachable);
  }
  const Nanos until{time.value + kResolvePatience.value};
  if (word.state() == route::NeighbourState::none ||
      !waiting_.enter({mbuf, neighbour, word.generation(), rx_port, tx_port, until})) {
    drop(rx_port, mbuf, Verdict::neighbour_unresolved);
  }
}

/// Notes that a packet goes to `neighbour`, and asks for it where that is due and not too much has been asked.
void RouteLcore::use(std::uint32_t neighbour, std::uint16_t tx_port, Nanos time) {
  Port& port = ports_[tx_port];
  route::TokenBucket& bucket = neighbours_.word(neighbour).has_mac() ? port.known : port.unknown;
  const route::NeighbourQuestion question = neighbours_.use(neighbour, time, bucket.has(time));
  const auto key = question.send ? neighbours_.key(neighbour) : std::nullopt;
  if (key && bucket.take(time)) ask(*key, question);
}

/// It has been checked for all but this: nothing stops it any more.
void RouteLcore::send(rte_mbuf* mbuf, std::uint16_t tx_port, std::uint64_t mac) {
  Port& out = ports_[tx_port];
  std::uint8_t* frame = bytes_of(mbuf);
  if (is_v4_frame(frame)) {
    route::HopRewrite::live_less_v4(frame + kEthernet);
  } else {
    route::HopRewrite::live_less_v6(frame + kEthernet);
  }
  out.rewrite.stations(frame, mac);
  out.egress.push(mbuf, rte_pktmbuf_pkt_len(mbuf));
}

void RouteLcore::ask(const route::NeighbourKey& key, const route::NeighbourQuestion& question) {
  Port& port = ports_[key.port];
  const IpAddress target = key.ip();
  const std::optional<IpAddress> source = route::asking_address(*port.own, target);
  rte_mbuf* mbuf = source ? rte_pktmbuf_alloc(port.sending) : nullptr;
  if (mbuf == nullptr) return;  // it is asked again at the next use
  const std::uint32_t length = route::write_neighbour_request({bytes_of(mbuf), route::kNeighbourRequestLength},
                                                              port.own->mac, *source, target, question.to);
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
    const route::NeighbourWord word = neighbours_.word(packet.neighbour);
    const bool same = word.generation() == packet.generation;
    if (same && word.has_mac()) {
      send(packet.mbuf, packet.tx_port, word.mac());
      return true;
    }
    if (same && word.state() == route::NeighbourState::incomplete && time < packet.until) {
      use(packet.neighbour, packet.tx_port, time);
      return false;
    }
    refuse(packet.rx_port, packet.mbuf, Verdict::neighbour_unresolved, route::IcmpReason::host_unreachable);
    return true;
  });
}

bool RouteLcore::take(std::uint16_t rx_port, rte_mbuf* mbuf, FrameRef frame, const packet::ParsedFrame& parsed,
                      const std::vector<packet::Responder>& responders) {
  Port& port = ports_[rx_port];
  if (!(is_neighbour_message(frame, parsed) ? port.neighbour_messages : port.slow).take(slow_now())) {
    drop(rx_port, mbuf, Verdict::slow_path_full);
    return true;
  }
  const std::optional<route::NeighbourNews> news = route::neighbour_news(frame, parsed, *ports_[rx_port].own);
  const bool learns = news && news->is_for(neighbours_, rx_port);
  if (learns) neighbours_.learn(route::NeighbourKey::of(rx_port, news->address), news->evidence, router_now());
  const bool query = packet::Responder::is_listener_query(frame, parsed);
  if (query) report_groups(rx_port, mbuf, responders);
  for (const packet::Responder& responder : responders) {
    if (query || !memory::answer(responder, frame, parsed, mbuf)) continue;
    ports_[rx_port].path->sent.replies.add(1);
    ports_[rx_port].egress.push(mbuf, rte_pktmbuf_pkt_len(mbuf));
    return true;
  }
  if (!learns && !query) return false;
  counters_.delivered_packets.add(1);
  counters_.delivered_bytes.add(rte_pktmbuf_pkt_len(mbuf));
  rte_pktmbuf_free(mbuf);
  return true;
}

void RouteLcore::report_groups(std::uint16_t rx_port, const rte_mbuf* query,
                               const std::vector<packet::Responder>& responders) {
  Port& port = ports_[rx_port];
  for (auto responder = responders.begin(); responder != responders.end(); ++responder) {
    const auto same = [&](const packet::Responder& other) { return other.same_group(*responder); };
    if (std::any_of(responders.begin(), responder, same)) continue;
    rte_mbuf* const report = rte_pktmbuf_copy(query, port.sending, 0, UINT32_MAX);
    if (report == nullptr) return;  // the querier asks again
    Pieces pieces(report);
    if (pieces.count == 0 || !responder->answer(pieces.ref())) {
      rte_pktmbuf_free(report);
      continue;
    }
    report->ol_flags = 0;
    counters_.generated_packets.add(1);
    counters_.generated_bytes.add(rte_pktmbuf_pkt_len(report));
    port.egress.push(report, rte_pktmbuf_pkt_len(report));
  }
}

std::optional<IpAddress> RouteLcore::error_source(const route::RouterPort& port, const IpAddress& to) const {
  std::optional<IpAddress> source = route::error_source(port, to);
  for (auto other = own_.begin(); !source && other != own_.end(); ++other) source = route::error_source(other->own, to);
  return source;
}

/// An IP packet to one of the router's addresses.
void RouteLcore::deliver(std::uint16_t rx_port, rte_mbuf* mbuf) {
  Pieces pieces(mbuf);
  const FrameRef frame = pieces.ref();
  const packet::ParsedFrame parsed = packet::parse(frame);
  if (is_drop(parsed.verdict)) return drop(rx_port, mbuf, parsed.verdict);
  if (take(rx_port, mbuf, frame, parsed, ports_[rx_port].routed)) return;
  if (parsed.l4 != packet::L4Kind::udp && parsed.l4 != packet::L4Kind::tcp)
    return drop(rx_port, mbuf, Verdict::no_listener);
  refuse(rx_port, mbuf, Verdict::no_listener, route::IcmpReason::port_unreachable);
}

void RouteLcore::drop(std::uint16_t rx_port, rte_mbuf* mbuf, Verdict reason) {
  note_drop(rx_port, mbuf, reason);
  rte_pktmbuf_free(mbuf);
}

void RouteLcore::note_drop(std::uint16_t rx_port, rte_mbuf* mbuf, Verdict reason) {
  datapath::QueuePath& path = *ports_[rx_port].path;
  path.sent.drops.add(reason);
  if (auto* const capture = path.capture.load(std::memory_order_acquire); capture != nullptr) [[unlikely]]
    datapath::capture_drops(*capture, &mbuf, 1, path.rx, capture::Direction::inbound, reason);
}

void RouteLcore::refuse(std::uint16_t rx_port, rte_mbuf* mbuf, Verdict verdict, route::IcmpReason reason,
                        std::uint16_t mtu) {
  note_drop(rx_port, mbuf, verdict);
  if (!ports_[rx_port].slow.take(slow_now()) || !turn_into_error(rx_port, mbuf, reason, mtu))
    return rte_pktmbuf_free(mbuf);
  const std::uint32_t length = rte_pktmbuf_pkt_len(mbuf);
  counters_.errors.add(1);
  counters_.generated_packets.add(1);
  counters_.generated_bytes.add(length);
  ports_[rx_port].egress.push(mbuf, length);
}

bool RouteLcore::turn_into_error(std::uint16_t rx_port, rte_mbuf* mbuf, route::IcmpReason reason, std::uint16_t mtu) {
  Pieces pieces(mbuf);
  const FrameRef frame = pieces.ref();
  const packet::ParsedFrame parsed = packet::parse(frame);
  if (!route::may_send_icmp_error(frame, parsed, reason) || !errors_.take(router_now())) return false;
  const Port& port = ports_[rx_port];
  std::uint8_t* ethernet = frame.data();
  std::uint8_t* datagram = ethernet + parsed.l3_offset;
  const bool v4 = parsed.l3 == packet::L3Kind::ipv4;
  const IpAddress sender = v4 ? IpAddress{packet::load_address<Ipv4Address>(datagram + packet::Ipv4View::kSource)}
                              : IpAddress{packet::load_address<Ipv6Address>(datagram + packet::Ipv6View::kSource)};
  const std::optional<IpAddress> own = error_source(*port.own, sender);
  const auto more =
      static_cast<std::uint16_t>((v4 ? route::kIcmpV4ErrorHeaders : route::kIcmpV6ErrorHeaders) - kEthernet);
  const bool ours_alone = RTE_MBUF_DIRECT(mbuf) && rte_mbuf_refcnt_read(mbuf) == 1;
  if (!own || !ours_alone || rte_pktmbuf_headroom(mbuf) < more) return false;
  const auto station = packet::load_address<MacAddress>(ethernet + packet::EthernetView::kSource);
  const std::uint32_t kept = route::write_icmp_error({reason, port.own->mac, station, *own, mtu}, datagram,
                                                     frame.head_length() - parsed.l3_offset);
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

}  // namespace warpline::router
