// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <rte_mbuf.h>

#include "warpline/base/statistics/counter.h"
#include "warpline/base/time/clock.h"
#include "warpline/base/units.h"
#include "warpline/datapath/queue_path.h"
#include "warpline/datapath/transmit.h"
#include "warpline/packet/parse.h"
#include "warpline/packet/responder.h"
#include "warpline/route/hop_rewrite.h"
#include "warpline/route/icmp_error.h"
#include "warpline/route/neighbour_frames.h"
#include "warpline/route/neighbours.h"
#include "warpline/route/route_set.h"
#include "warpline/route/token_bucket.h"
#include "warpline/router/egress.h"
#include "warpline/router/generation.h"
#include "warpline/router/plain_burst.h"
#include "warpline/router/waiting_room.h"

namespace warpline::router {

/// The time that neighbours and what waits for them age by: nanoseconds of the time-stamp counter.
inline Nanos router_now() { return {static_cast<std::int64_t>(ticks_to_nanos(ticks_now()))}; }

/// What routing did beside passing packets on. One writer: the lcore.
struct alignas(64) RouteCounters {
  Counter delivered_packets;  ///< to the router itself: ARP and neighbour discovery that it learnt from
  Counter delivered_bytes;
  Counter generated_packets;  ///< requests and errors
  Counter generated_bytes;
  Counter requests;  ///< ARP requests and neighbour solicitations
  Counter errors;    ///< ICMP errors
};

/// A started port.
struct RoutePort {
  std::uint16_t id{};
  route::RouterPort own{};
  rte_mempool* sending{};                     ///< where requests come from
  std::span<packet::AddressWatch> watches{};  ///< as port::Port::watches(); empty: nobody looks for conflicts
};

/// What one lcore has to route with, and all of routing that is not the common way: packets to the router, to
/// neighbours that are not known yet, and those that cannot be passed on. Owner: that lcore; the neighbours are
/// everybody's.
///
/// Packets that need more than a lookup and a rewrite (those for the router itself, those whose next hop has no MAC
/// address yet, those that get an ICMP error) have a budget per receiving port, so that their senders do not take the
/// lcore from the packets that are passed on. It is refilled per round, and by time, as rounds are few where an lcore
/// shares its core. ARP and neighbour discovery have one of their
/// own: next hops stay known while others flood the router.
class RouteLcore {
 public:
  static constexpr std::uint32_t kSlowBurst = 1024;      ///< slow packets of a port at once, of either budget
  static constexpr std::uint32_t kSlowPerRound = 2;      ///< and in the long run, per round
  static constexpr std::int64_t kSlowInterval = 20'000;  ///< and one each so many nanoseconds

  /// One port, as this lcore uses it.
  struct Port {
    route::HopRewrite rewrite;
    route::PlainFrames plain;
    PlainBurst plain_burst;
    std::uint32_t max_frame;
    rte_mempool* sending;
    const route::RouterPort* own;
    datapath::QueuePath* path;
    std::vector<packet::Responder> on_link;  ///< for the port's own addresses
    std::vector<packet::Responder> routed;   ///< for all the router's addresses, as seen from this port
    Egress egress;
    route::TokenBucket unknown;  ///< requests for neighbours without a MAC address
    route::TokenBucket known;    ///< and for those that are asked again
    route::TokenBucket slow;     ///< received packets that need more than to be passed on; its clock is slow_now()
    route::TokenBucket neighbour_messages;  ///< received ARP and neighbour discovery, likewise
  };

  /// `ports` and `paths`, this lcore's by port, outlive it.
  RouteLcore(const std::vector<RoutePort>& ports, const std::vector<datapath::QueuePath*>& paths,
             route::NeighbourTable& neighbours);

  [[nodiscard]] std::vector<Port>& ports() { return ports_; }
  [[nodiscard]] const route::NeighbourTable& neighbours() const { return neighbours_; }

  /// A frame that is no plain one. ipv4 or ipv6: to be looked up, its IP header whole in the first segment, right
  /// behind the Ethernet header. none: it is done with.
  [[nodiscard]] packet::L3Kind examine(std::uint16_t rx_port, rte_mbuf* mbuf);

  /// A packet that was looked up and cannot simply leave.
  void pass_on(std::uint16_t rx_port, rte_mbuf* mbuf, Hop hop, bool v4);

  /// Once a round: refills the budgets, and lets those go whose neighbour has been found, or does not answer.
  void begin_round() {
    ++rounds_;
    if (!waiting_.empty()) [[unlikely]]
      call_waiting();
  }
  /// Once a round: sends what is due. Returns how many packets left.
  std::uint32_t flush_due(bool idle) {
    const std::uint64_t now = ticks_now();
    round_ended_ = now;
    std::uint32_t sent = 0;
    for (Port& port : ports_) {
      sent += port.egress.flush_due(idle, now);
      datapath::send_announcements(*port.path);
    }
    return sent;
  }
  /// At the end: drops what waits, and sends all that is to go.
  void end();

  [[nodiscard]] const RouteCounters& counters() const { return counters_; }

 private:
  void drop(std::uint16_t rx_port, rte_mbuf* mbuf, Verdict reason);
  /// Counts a drop, and has the packet captured as it is now.
  void note_drop(std::uint16_t rx_port, rte_mbuf* mbuf, Verdict reason);
  /// Drops it, with an ICMP error back to its sender where that is right and the budget allows it; the error is made of
  /// the packet itself.
  void refuse(std::uint16_t rx_port, rte_mbuf* mbuf, Verdict verdict, route::IcmpReason reason, std::uint16_t mtu = 0);
  [[nodiscard]] bool turn_into_error(std::uint16_t rx_port, rte_mbuf* mbuf, route::IcmpReason reason,
                                     std::uint16_t mtu);
  /// To the router itself: true, and done with, if it was an answer, a question or news of a neighbour, or beyond the
  /// budget.
  [[nodiscard]] bool take(std::uint16_t rx_port, rte_mbuf* mbuf, FrameRef frame, const packet::ParsedFrame& parsed,
                          const std::vector<packet::Responder>& responders);
  void deliver(std::uint16_t rx_port, rte_mbuf* mbuf);
  void wait_for(std::uint16_t rx_port, rte_mbuf* mbuf, std::uint16_t tx_port, std::uint32_t neighbour);
  void send(rte_mbuf* mbuf, std::uint16_t tx_port, std::uint64_t mac);
  void use(std::uint32_t neighbour, std::uint16_t tx_port, Nanos time);
  void ask(const route::NeighbourKey& key, const route::NeighbourQuestion& question);
  void call_waiting();
  /// The clock of the budgets: it advances by kSlowPerRound per round, and by one per kSlowInterval, as of the end of
  /// the last round.
  [[nodiscard]] Nanos slow_now() const {
    return {static_cast<std::int64_t>(rounds_ * kSlowPerRound) +
            static_cast<std::int64_t>(ticks_to_nanos(round_ended_)) / kSlowInterval};
  }
  [[nodiscard]] bool is_own(const IpAddress& address) const;
  /// A report for each group of the port, in answer to a query.
  void report_groups(std::uint16_t rx_port, const rte_mbuf* query, const std::vector<packet::Responder>& responders);
  /// What an ICMP error to `to` comes from, on the port that the packet came in by.
  [[nodiscard]] std::optional<IpAddress> error_source(const route::RouterPort& port, const IpAddress& to) const;

  const std::vector<RoutePort>& own_;
  route::NeighbourTable& neighbours_;
  std::vector<Port> ports_;
  WaitingRoom waiting_;
  std::uint32_t events_seen_ = 0;
  Nanos look_again_{0};
  std::uint64_t rounds_ = 0;
  std::uint64_t round_ended_ = 0;  ///< when the last one did, in ticks
  route::TokenBucket errors_;
  RouteCounters counters_;
};

}  // namespace warpline::router
