// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "warpline/message/internal/core/message_pool.h"
#include "warpline/message/internal/core/session_table.h"
#include "warpline/message/internal/parts/index_pool.h"

namespace warpline::message {

/// An event that is due: a message's, or one of a session's two. Index kNone: there is none.
struct EventLink {
  enum class Of : std::uint8_t { message, opened, lost };
  std::uint32_t index = kNone;
  Of of = Of::message;
};

/// Places for requests of an application that says of none: it takes all.
inline constexpr std::size_t kUnbounded = std::numeric_limits<std::size_t>::max();

/// What poll() hands out, in order: links through messages and sessions, so that it is never full. What is in it says
/// so: Message::event_due, Session::opened_event and Session::lost_event.
///
/// Requests beyond those that the application takes are set aside. They are handed out in fair turns: of prefixes, in
/// each of its addresses, and of each address in order, so that many requests of one peer do not delay those of others.
/// An address that has its share of the application's places gets no turn, see PeerGroups.
class EventQueue {
 public:
  EventQueue(SessionTable& sessions, MessagePool& messages, PeerGroups& groups)
      : sessions_(sessions), messages_(messages), groups_(groups) {}
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  void add(std::uint32_t message);
  void add_opened(Session& session);
  /// Nothing if the session was forgotten.
  void add_lost(Session& session);

  /// The next one; without places for `requests`, those that nobody has withdrawn are set aside until a call with.
  [[nodiscard]] EventLink take(std::size_t requests);
  /// The application has taken a request, and has a bounded number of places.
  void begin_request(Message& message);
  /// A request that begin_request() was called for takes none of the application's places any more.
  void end_request(Message& message);
  /// Sets the requests aside that are next.
  void set_requests_aside();

 private:
  /// Puts a link at the end. `behind` is where it keeps the one behind it, as next() tells of one that was taken.
  void add(EventLink link, std::uint32_t& behind);
  [[nodiscard]] std::uint32_t& next(EventLink link);
  [[nodiscard]] bool is_request(EventLink link) const;
  EventLink pop();
  void set_aside(std::uint32_t request);
  void list(std::uint32_t address);
  [[nodiscard]] bool may_take(std::uint32_t request, std::size_t places) const;
  [[nodiscard]] std::uint32_t take_turn(std::size_t places);

  SessionTable& sessions_;
  MessagePool& messages_;
  PeerGroups& groups_;
  std::uint32_t first_ = kNone;   ///< in 32 bits, as the links behind it are in messages and sessions
  std::uint32_t* end_ = &first_;  ///< where the link that is added next is put
  MessageList prefixes_;          ///< groups that have requests set aside
  bool aside_next_ = true;        ///< these and the queue alternate
};

}  // namespace warpline::message
