// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "sim/applications/application.h"
#include "sim/network.h"
#include "sim/trace.h"
#include "warpline/base/random.h"
#include "warpline/message/endpoint.h"

namespace warpline::sim {

struct HostConfig {
  message::EndpointConfig endpoint = {};
  std::uint32_t receive_ring = 1024;  ///< packets
  std::uint32_t transmit_ring = 64;   ///< packets
  std::int64_t wake_delay = 300;      ///< nanoseconds from an event to the host's loop
  std::uint32_t bursts = ~0U;         ///< received in a turn of the loop at most
  bool stamps = true;                 ///< the NIC says when datagrams arrived
  // What the loop takes, nanoseconds.
  std::int64_t burst_time = 0;    ///< to receive one
  std::int64_t handler_time = 0;  ///< for each event
  double descheduled = 0;         ///< probability, each turn, that another process has the processor for
  std::int64_t longest_away = 1;  ///< so long at most
  std::int64_t clock_offset = 0;  ///< nanoseconds that the host's clock is ahead of virtual time
  bool check_allocations = false;
  bool refuses = false;  ///< while the process is away, what comes for it goes back as ICMP port unreachable
  double lied_to = 0;    ///< probability, each packet sent, that somebody who has read it says that nobody is there
  bool damaged_packets_pass = false;  ///< session packets only: the NIC verifies no checksum, authentication has to
};

struct HostCounters {
  std::uint64_t ring_full = 0;
  std::uint64_t bad_checksum = 0;
  std::uint64_t while_down = 0;
  std::uint64_t at_old_address = 0;
  std::uint64_t loops = 0;
  std::uint64_t drains = 0;          ///< processes that were to end in peace
  std::uint64_t idle_deadlines = 0;  ///< loops that a deadline asked for and in which nothing was done
};

[[nodiscard]] message::PeerAddress address_of_host(std::uint32_t host);
/// The host that has this address, or had it; beyond all hosts if none did.
[[nodiscard]] std::uint32_t host_of_address(const message::PeerAddress& address);

/// An endpoint, the loop that drives it, a NIC with rings of finite length, and a clock of its own.
class Host final : public Actor, public PacketSink, public Departures {
 public:
  Host(Network& network, std::uint32_t index, const HostConfig& config, Application& application, std::uint64_t seed,
       Trace trace);

  void start();

  // Faults, from the scenario.
  /// The loop stands still, also amidst a turn; what arrives waits in the ring.
  void pause_until(std::int64_t time);
  /// The process is gone with all its state; another starts at `time`.
  void restart_at(std::int64_t time);
  /// Takes nothing new, and when all is answered, or `patience` is over, the process ends and another starts.
  void drain(std::int64_t patience);
  void step_clock(std::int64_t nanos) { clock_offset_ += nanos; }
  /// It has another port, as behind a NAT that has forgotten it, or also another address; what is sent to where it was
  /// is lost.
  void move(bool other_address);

  // For the application.
  [[nodiscard]] message::Endpoint& endpoint() { return *endpoint_; }
  [[nodiscard]] Nanos clock() const { return Nanos{events_.now() + clock_offset_}; }
  [[nodiscard]] std::int64_t now() const { return events_.now(); }
  [[nodiscard]] std::uint32_t index() const { return index_; }
  [[nodiscard]] const HostConfig& config() const { return config_; }
  [[nodiscard]] bool up() const { return endpoint_.has_value(); }
  [[nodiscard]] const Trace& trace() const { return trace_; }
  [[nodiscard]] const HostCounters& counters() const { return counters_; }
  [[nodiscard]] std::uint64_t datagrams_received() const { return datagrams_received_; }
  /// Returns the facts of an endpoint that has done nothing yet.
  [[nodiscard]] const message::EndpointFacts& fresh() const { return fresh_; }
  void wake_at(std::int64_t time, std::uint64_t what);
  /// What the application asked of the endpoint outside of handle() and wake() leaves soon.
  void schedule_loop(std::int64_t time);

  void act(std::uint64_t what) override;
  void arrive(Packet* packet) override;
  void departing(Packet& packet) override;

 private:
  static constexpr std::uint32_t kRepeated = 64;  ///< bytes of a packet in the ICMP message about it
  /// What ICMP said of a packet to this address.
  struct Said {
    message::PeerAddress to;
    std::array<std::uint8_t, kRepeated> bytes;
    std::uint32_t length;
  };

  void loop();
  void finish_loop();
  void end_drained();
  /// Bursts, or events: so many there were.
  std::uint32_t receive();
  std::uint32_t hand_out_events();
  void transmit();
  void schedule_next();
  void drop(Packet* packet, std::uint64_t& counter);
  void refuse(Packet* packet);
  void hear_refusal(Packet* packet);
  void note_unreachable(const Packet& packet);
  void hear_unreachable();

  EventQueue& events_;
  Network& network_;
  Port& uplink_;
  std::uint32_t index_;
  message::PeerAddress address_;
  HostConfig config_;
  Application& application_;
  Random random_;
  Trace trace_;

  std::optional<message::Endpoint> endpoint_;
  message::EndpointFacts fresh_;
  std::deque<Packet*> ring_;
  std::vector<Said> said_;  ///< not heard yet
  std::int64_t clock_offset_;
  std::int64_t paused_until_ = 0;
  std::int64_t loop_began_ = 0;
  std::int64_t busy_until_ = 0;    ///< the end of the turn of the loop that it is in
  std::int64_t next_loop_ = -1;    ///< the earliest loop that is scheduled; -1: none
  std::uint32_t incarnation_ = 0;  ///< wakes of an earlier one are void
  bool draining_ = false;
  bool blocked_ = false;  ///< the transmit ring was full
  std::uint64_t datagrams_received_ = 0;
  HostCounters counters_;
};

}  // namespace warpline::sim
