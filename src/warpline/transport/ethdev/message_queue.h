// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <rte_mbuf.h>
#include <rte_prefetch.h>
#include <rte_ring.h>

#include "warpline/base/large_vector.h"
#include "warpline/base/result.h"
#include "warpline/packet/parse.h"
#include "warpline/port/announce/announce.h"
#include "warpline/port/port_queue.h"
#include "warpline/transport/ethdev/message_link.h"
#include "warpline/transport/transport.h"
#include "warpline/transport/udp_path.h"

namespace warpline::transport {

/// Which worker a datagram belongs to: of a session the one whose endpoint has it, wherever it came from; else by its
/// UDP ports and addresses.
struct MessageSteering {
  std::uint16_t first_port = 0;  ///< UDP port of the first worker
  std::uint16_t workers = 1;
  bool own_ports = false;  ///< worker i has port first_port + i; else all share first_port
  bool by_device = true;   ///< shared port: a flow always comes by the same queue, which then has it

  static constexpr std::uint16_t kNoEndpoint = 0xffff;  ///< of a datagram that names no session
  /// Worker of a datagram that came by the queue of worker `here`; `workers` if it is for nobody. `endpoint`: number of
  /// the endpoint whose session it names.
  [[nodiscard]] std::uint16_t owner(std::uint16_t here, std::uint16_t to_port, const message::PeerAddress& from,
                                    std::uint16_t endpoint = kNoEndpoint) const;
};

struct MessageQueueSetup {
  port::PortQueue place{};
  std::uint16_t worker = 0;
  MessageSteering steering{};
  rte_mempool* pool = nullptr;  ///< received frames and heads of sent ones
  rte_mempool* payloads =
      nullptr;  ///< mbufs for external buffers, with MessageQueue::private_bytes(); null: payload is copied
  std::span<rte_ring* const>
      handover{};  ///< one a worker, for datagrams that came by another's queue; empty: one worker
  std::uint32_t max_sessions = 0;
  std::uint32_t datagram_bytes = 1472;
  UdpChecksum checksum = UdpChecksum::software;
  bool any_memory = true;  ///< payload may be anywhere: the device is software
};

/// An endpoint's datagrams by one queue pair of an ethdev: headers built in place in front of the message, payload
/// gathered where it lies. Answers and asks ARP and neighbour discovery. One thread; what it sends may be freed by any.
class MessageQueue final : public Transport {
 public:
  static constexpr std::uint16_t kBurst = 64;

  [[nodiscard]] static Result<std::unique_ptr<MessageQueue>> make(const MessageQueueSetup& setup, MessageLink& link);
  /// Gives back the buffers that it holds; it is not used any more.
  void close();
  /// After the port is closed: drivers and peers free what was sent.
  ~MessageQueue() override;

  std::span<const message::Datagram> receive(Nanos now) override;
  /// Devices round bursts down, or take them in halves.
  [[nodiscard]] bool more() const override { return last_burst_ >= kBurst / 2; }
  std::span<message::Outgoing> room() override;
  void send(std::size_t count, Nanos now) override;
  std::span<const std::uint64_t> completed() override;
  void wait(Nanos now, Nanos until) override;

  /// Payload there may be sent without a copy although the device is hardware, or plays it as net_vnic does: EAL knows
  /// this memory, and the device has it mapped at the CPU's addresses. At set-up.
  void allow(std::span<const std::uint8_t> memory) { allowed_.push_back(memory); }
  /// Returns the size in bytes of the private area that each mbuf of setup.payloads needs.
  [[nodiscard]] static std::uint16_t private_bytes();
  /// Has receive() send what `announcer` has; null: nothing. At set-up.
  void set_announcer(port::Announcer* announcer) { announcer_ = announcer; }

 private:
  struct Gathered;
  struct Located;
  /// The way to a session's peer, as of when the neighbour's word was so.
  struct Way {
    UdpPath path;
    std::uint32_t slot = route::NeighbourTable::kNobody;
    route::NeighbourWord word;
  };

  MessageQueue(const MessageQueueSetup& setup, MessageLink& link);
  static void payload_free(void* data, void* gathered);

  [[nodiscard]] std::uint16_t endpoint_named(const rte_mbuf* mbuf, const Located& found) const;
  Verdict locate(rte_mbuf* mbuf, Located& found, message::Datagram& datagram) const;
  void take(rte_mbuf* mbuf, bool handed_over, Nanos now);
  void hand_out(rte_mbuf* mbuf, const Located& found, message::Datagram& datagram);
  void control(rte_mbuf* mbuf, Nanos now);
  void report_groups(const rte_mbuf* query);
  bool send_control(rte_mbuf* mbuf);
  void free_received();
  void fill_heads();

  [[nodiscard]] Way& way_of(const message::Outgoing& outgoing) {
    return ways_[std::min<std::size_t>(outgoing.session, ways_.size() - 1)];
  }
  /// Prefetches the way of the packet with this number in outgoing_, if the number is less than `end`.
  void fetch_way(std::size_t packet, std::size_t end) {
    if (packet >= end) return;
    const auto* const way = reinterpret_cast<const std::uint8_t*>(&way_of(outgoing_[packet]));
    rte_prefetch0(way);
    rte_prefetch0(way + sizeof(Way) / 2);
  }
  const UdpPath* path_to(const message::Outgoing& outgoing, Nanos now);
  const UdpPath* resolve(const message::PeerAddress& peer, Way& way, Nanos now);
  void ask(std::uint32_t slot, const route::NeighbourQuestion& question);
  bool add_payload(rte_mbuf* head, const message::Outgoing& outgoing);
  [[nodiscard]] bool may_gather(const message::Outgoing& outgoing) const;
  void drop(rte_mbuf* head, const message::Outgoing& outgoing);
  void flush();
  void give_up(Nanos now);

  MessageQueueSetup setup_;
  MessageLink& link_;
  std::vector<std::span<const std::uint8_t>> allowed_;

  std::array<rte_mbuf*, 2 * kBurst> received_{};  ///< given back once there is nothing to do, or no room for more
  std::uint16_t received_count_ = 0;
  port::Announcer* announcer_ = nullptr;
  std::uint16_t last_burst_ = 0;  ///< frames that the last receive() found
  std::array<message::Datagram, kBurst> datagrams_;
  std::uint16_t datagram_count_ = 0;
  std::vector<std::uint8_t> scratch_;  ///< for datagrams in more pieces than two, one slot each

  std::array<rte_mbuf*, kBurst> heads_{};  ///< for room()
  std::array<message::Outgoing, kBurst> outgoing_;
  std::uint16_t heads_used_ = kBurst;  ///< the first of them are gone
  std::array<rte_mbuf*, kBurst> unsent_{};
  std::uint16_t unsent_at_ = 0;
  std::uint16_t unsent_end_ = 0;
  bool took_ = false;  ///< the device took some of them since this was last looked at
  Nanos waits_since_;  ///< when unsent_ was filled, or progress was last noticed

  LargeVector<Way> ways_;       ///< by session, the last one for handshakes
  rte_ring* done_ = nullptr;    ///< tokens, from whoever frees
  std::uint32_t gathered_ = 0;  ///< payloads out there or in done_
  std::uint32_t done_room_ = 0;
  std::array<std::uint64_t, 2 * kBurst> tokens_{};
  std::uint32_t token_count_ = 0;  ///< tokens of payloads that were copied or dropped
};

}  // namespace warpline::transport
