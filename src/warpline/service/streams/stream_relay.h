// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "warpline/base/statistics/counter.h"
#include "warpline/message/endpoint.h"
#include "warpline/stream/relay_messages.h"
#include "warpline/stream/stream_receiver.h"

namespace warpline::service {

/// What a StreamRelay counts. Its thread writes, any thread reads.
struct RelayCounters {
  Counter connections;    ///< for which a session was opened
  Counter no_session;     ///< aborted since there was no memory for another session
  Counter delivered;      ///< bytes that the server has, as it acknowledged
  Counter ended;          ///< connections whose bytes and end the server has
  Counter lost_sessions;  ///< that ended before: their connections were aborted
};

/// Hands on what connections bring as messages, relay_messages.h has their form: a session of its own for each. A piece
/// leaves from where it lies in the connection's ring, and its place is given back when the server has it. So a slow
/// server closes the window, and a connection is closed only when all of it has arrived there. One thread makes all
/// calls.
class StreamRelay {
 public:
  /// For a receiver of so many connections with rings of so many bytes. Sessions are opened with `server`.
  StreamRelay(const message::PeerAddress& server, std::uint32_t connections, std::uint64_t ring_bytes);

  /// Takes an event of the endpoint, of which this is the only user.
  void handle(stream::StreamReceiver& receiver, message::Endpoint& endpoint, const message::MessageEvent& event,
              Nanos now);
  /// Does what the receiver's events ask for, and what had to wait. True if there was something.
  bool turn(stream::StreamReceiver& receiver, message::Endpoint& endpoint, Nanos now);
  /// True if the server has all that could be read.
  [[nodiscard]] bool settled() const { return under_way_ == 0 && waiting_.empty(); }
  /// Aborts up to `most` of the connections that are left and tells their peers and the server. Returns how many; 0:
  /// none is left. Nothing else but handle() is called afterwards.
  std::uint32_t abort_some(stream::StreamReceiver& receiver, message::Endpoint& endpoint, std::uint32_t most,
                           Nanos now);

  [[nodiscard]] const RelayCounters& counters() const { return counters_; }

 private:
  static constexpr std::uint32_t kPieces = 8;    ///< of a connection under way at once
  static constexpr std::uint32_t kBegin = 0xfe;  ///< number of the first message, where pieces have theirs
  static constexpr std::uint32_t kEnd = 0xff;    ///< number of the last one

  /// A piece under way.
  struct Piece {
    std::uint32_t length = 0;
    bool delivered = false;
  };

  /// A connection as its session knows it.
  struct Outlet {
    stream::ConnectionId id;
    message::SessionId session;
    std::uint64_t submitted = 0;          ///< bytes of the stream that were handed to the endpoint
    std::array<Piece, kPieces> pieces{};  ///< a ring, of those whose place is not given back
    std::uint32_t first = 0;              ///< of these
    std::uint32_t count = 0;              ///< of these
    bool known = false;
    bool begun = false;          ///< the first message was submitted
    bool ending = false;         ///< the last one was
    bool end_delivered = false;  ///< the server has it
    bool waiting = false;        ///< stands in `waiting_`
  };

  void open(stream::StreamReceiver& receiver, message::Endpoint& endpoint, const stream::StreamEvent& event, Nanos now);
  [[nodiscard]] bool submit(stream::StreamReceiver& receiver, message::Endpoint& endpoint, Outlet& outlet, Nanos now);
  [[nodiscard]] bool send(message::Endpoint& endpoint, const Outlet& outlet, stream::RelayCode code,
                          std::uint32_t number, message::ConstBuffer message, Nanos now);
  void submit_or_wait(stream::StreamReceiver& receiver, message::Endpoint& endpoint, Outlet& outlet, Nanos now);
  void take_delivery(stream::StreamReceiver& receiver, message::Endpoint& endpoint, const message::MessageEvent& event,
                     Nanos now);
  void lose(stream::StreamReceiver& receiver, Outlet& outlet, Nanos now);
  [[nodiscard]] Outlet* named(std::uint64_t context);

  message::PeerAddress server_;
  std::uint64_t largest_;  ///< bytes of a piece, so that place becomes free while others are under way
  std::vector<Outlet> outlets_;
  std::vector<std::uint32_t> waiting_;  ///< connections for which the endpoint had no memory; never grows
  std::uint64_t under_way_ = 0;         ///< messages, of connections that are known
  std::uint32_t next_abort_ = 0;
  RelayCounters counters_;
};

}  // namespace warpline::service
