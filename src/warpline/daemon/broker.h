// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "warpline/base/statistics/counter.h"
#include "warpline/base/units.h"
#include "warpline/daemon/attachment.h"
#include "warpline/daemon/settings.h"
#include "warpline/message/endpoint.h"

namespace warpline::daemon {

/// What a daemon did for all clients. Written by the endpoint's thread, read by any.
struct BrokerCounters {
  Counter no_service;  ///< requests and messages of peers with a code that nobody listens for: declined
  Counter expelled;    ///< clients that wrote what no client library writes
  std::array<Counter, static_cast<std::size_t>(message::LossReason::unreachable) + 1> lost;  ///< sessions, by why
};

/// Goes between one endpoint and many clients: does what their submissions ask for, a bounded share of each in turn,
/// and tells each what is its own. No I/O but the wake-ups of Attachment::notify(). The endpoint's thread makes all
/// calls; after the constructor nothing is allocated.
class Broker {
 public:
  /// `config`: of the endpoint, which outlives it.
  Broker(message::Endpoint& endpoint, const message::EndpointConfig& config, const DaemonSettings& settings);

  /// Serves this client from now on, until done_with() says that it is no more; one of DaemonSettings::clients at most.
  void attach(Attachment& client);
  /// The client has hung up, or is to go: its sessions are closed, what it was to answer is given back.
  void leave(Attachment& client, Nanos now);
  /// All clients are to go.
  void leave_all(Nanos now);
  /// A client that has left, and of which nothing is under way: nothing refers to it any more. Null: none.
  [[nodiscard]] Attachment* done_with();

  /// To be given each event of the endpoint.
  void handle(const message::MessageEvent& event, Nanos now);
  /// Takes a share of each client's submissions, and tries again what found no memory. Returns whether there were any.
  bool turn(Nanos now);
  void notify();                                              ///< shows all clients what happened
  void set_sleeping(bool sleeps);                             ///< clients wake the daemon while it sleeps
  [[nodiscard]] bool has_submissions() const;                 ///< turn() would find some
  [[nodiscard]] std::uint32_t calls_under_way() const;        ///< and answers, of all clients
  [[nodiscard]] bool empty() const { return present_ == 0; }  ///< no client is there, leaving ones neither

  /// Each place has a client or null.
  [[nodiscard]] std::span<Attachment* const> clients() const { return clients_; }
  [[nodiscard]] const BrokerCounters& counters() const { return counters_; }

 private:
  static constexpr std::uint32_t kNobody = 0xffffffff;
  static constexpr std::uint32_t kQueued = 0xffffffff;  ///< as a slot: it waits for one
  static constexpr int kSubmissionsATurn = 32;          ///< of each client
  static constexpr std::uint64_t kBytesATurn = 256U << 10;

  /// Whose a peer's request or message is.
  struct Place {
    std::uint32_t client = kNobody;
    std::uint32_t slot = 0;
  };

  [[nodiscard]] static std::uint64_t context_of(std::uint32_t client, std::uint32_t slot) {
    return (std::uint64_t{client} + 1) << 32 | slot;
  }
  [[nodiscard]] Attachment* client_of(std::uint64_t context, std::uint32_t& index) const;

  bool serve(std::uint32_t index, Nanos now);
  std::uint64_t do_one(std::uint32_t index, const client::Submission& submission, Nanos now);
  void connect(std::uint32_t index, const client::Submission& submission, Nanos now);
  void close(Attachment& client, std::uint32_t session, Nanos now);
  void begin_call(std::uint32_t index, const client::Submission& submission, Nanos now);
  void listen(std::uint32_t index, const client::Submission& submission);
  void answer(std::uint32_t index, const client::Submission& submission, Nanos now);
  void give_answer(std::uint32_t index, std::uint32_t slot, Nanos now);
  void give_waiting_answers(std::uint32_t index, Nanos now);
  void give_back(std::uint32_t index, std::uint32_t slot, Nanos now);
  void free_request(std::uint32_t index, std::uint32_t slot, Nanos now);
  void take_in(const message::MessageEvent& event, Nanos now);
  void deliver(std::uint32_t index, std::uint32_t slot, const message::MessageEvent& event, Nanos now);
  void withdraw(const message::MessageEvent& event, Nanos now);
  void end_call(Attachment& client, std::uint32_t slot, const message::MessageEvent& event);
  void end_session(Attachment& client, std::uint32_t session, const message::MessageEvent& event, Nanos now);
  void depart(std::uint32_t index, Nanos now);
  [[nodiscard]] std::uint32_t index_of(const Attachment& client) const;

  message::Endpoint& endpoint_;
  std::uint64_t connect_cost_;  ///< with protection a key pair is drawn: of the client's share of a turn, all
  std::vector<Attachment*> clients_;
  std::uint32_t present_ = 0;
  std::uint32_t first_ = 0;            ///< who is served first in the next turn
  std::vector<Place> incoming_;        ///< by MessageId::index
  std::vector<std::uint16_t> owners_;  ///< of each code: a client's index and one; 0: nobody's
  BrokerCounters counters_;
};

}  // namespace warpline::daemon
