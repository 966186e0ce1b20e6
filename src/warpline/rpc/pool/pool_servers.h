// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "warpline/base/random.h"
#include "warpline/base/units.h"
#include "warpline/message/endpoint.h"
#include "warpline/rpc/pool/server_pool_settings.h"

namespace warpline::rpc {

/// How an attempt at a server ended, as far as its health goes.
enum class AttemptEnd : std::uint8_t {
  answered,  ///< by an answer
  failed,    ///< without one, by a deadline or a hedge
  lost,      ///< with its session
  leaving,   ///< refused, because the server goes away
  other,     ///< in a way that says nothing about the server
};

/// The servers of a pool: their sessions, which are opened, lost and opened again; their health; and which of them the
/// next call goes to. Owner: the endpoint's thread.
class PoolServers {
 public:
  static constexpr std::size_t kNobody = std::numeric_limits<std::size_t>::max();

  /// Where an attempt goes.
  struct Place {
    std::size_t server = kNobody;
    std::size_t session = 0;
    bool trial = false;  ///< the one call of a server on trial
  };

  PoolServers(std::span<const SocketAddress> addresses, const ServerPoolSettings& settings, std::uint64_t seed);

  /// Opens what is to be opened. Returns whether there was anything to do.
  bool advance(message::Endpoint& endpoint, Nanos now);
  /// When advance() has something to do next.
  [[nodiscard]] Nanos next_deadline() const { return due_; }
  /// False if the event is not of a session of the pool.
  bool handle(message::Endpoint& endpoint, const message::MessageEvent& event, Nanos now);
  /// Closes all sessions; none is opened any more.
  void close(message::Endpoint& endpoint, Nanos now);

  /// The server and session for the next attempt, not `except`: the one of two randomly drawn servers that has fewer
  /// calls. A server on trial that has none goes first. None: no server has room.
  std::optional<Place> choose(std::size_t except = kNobody);
  /// Something arrived or left since: sessions without attempts that had no room may have some.
  void look_again();
  [[nodiscard]] message::SessionId session(const Place& place) const;
  void begin(const Place& place);  ///< an attempt begins there
  void end(message::Endpoint& endpoint, const Place& place, AttemptEnd end, Nanos now);
  /// The endpoint took nothing for this session: it has no room until one of its attempts has ended, or is gone. One
  /// that has no attempts, but messages of others, has room again with look_again().
  void refuse(message::Endpoint& endpoint, const Place& place, message::CallStatus status, Nanos now);

  /// Since when there has been no server that may be given calls; kNever: there is one, or one that has not yet been
  /// heard of.
  [[nodiscard]] Nanos nobody_since() const { return nobody_since_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] ServerFacts facts(std::size_t number) const;  ///< any thread

 private:
  struct Session {
    message::SessionId id{};
    bool there = false;    ///< the endpoint knows it
    bool open = false;     ///< the hello was answered
    bool retired = false;  ///< gets no more calls, and is closed when it has none
    bool full = false;     ///< the endpoint said so
    std::uint32_t calls = 0;
  };
  struct Server {
    SocketAddress address{};
    std::optional<ServerHealth> health{};
    std::vector<Session> sessions;    ///< ServerPoolSettings::sessions, and more for those that are retired
    std::size_t asking = kNobody;     ///< the session whose hello decides about the state `connecting`
    bool on_trial = false;            ///< has the one call of its trial
    Nanos fill_at = message::kNever;  ///< when the sessions that it lacks are opened again
    std::uint32_t refused = 0;        ///< hellos of further sessions in a row
    std::atomic<ServerState> shown{ServerState::connecting};
    std::atomic<std::uint32_t> calls{0};
    Counter answered, failed, times_left_out;
  };

  bool open(message::Endpoint& endpoint, Server& server, std::size_t session, Nanos now);
  void ask(message::Endpoint& endpoint, Server& server, Nanos now);
  void fill(message::Endpoint& endpoint, Server& server, Nanos now);
  void fill_later(Server& server, Nanos now);
  void retire(message::Endpoint& endpoint, Server& server, Nanos now);
  void connected(message::Endpoint& endpoint, Server& server, std::size_t session, Nanos now);
  void lost(message::Endpoint& endpoint, Server& server, std::size_t session, Nanos now);
  void show(message::Endpoint& endpoint, Server& server, Nanos now);
  void sort(Nanos now);
  [[nodiscard]] std::size_t room(const Server& server) const;
  [[nodiscard]] std::optional<Place> place(std::size_t number, std::size_t except) const;

  std::size_t size_;
  std::unique_ptr<Server[]> servers_;
  std::uint32_t sessions_;
  std::uint32_t calls_per_session_;
  BackOff back_off_;
  std::function<void(const ServerChange&)> on_change_;
  Random random_;
  std::vector<std::size_t> up_;      ///< numbers of the servers in that state
  std::vector<std::size_t> trials_;  ///< likewise
  Nanos due_{};
  Nanos nobody_since_ = message::kNever;
  bool closed_ = false;
  bool full_without_calls_ = false;  ///< some sessions are so
};

}  // namespace warpline::rpc
