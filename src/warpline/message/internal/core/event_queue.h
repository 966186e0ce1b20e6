// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

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

/// What poll() hands out, in order: links through messages and sessions, so that it is never full. What is in it says
/// so: Message::event_due, Session::opened_event and Session::lost_event.
class EventQueue {
 public:
  EventQueue(SessionTable& sessions, MessagePool& messages) : sessions_(sessions), messages_(messages) {}
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  void add(std::uint32_t message);
  void add_opened(Session& session);
  /// Nothing if the session was forgotten.
  void add_lost(Session& session);

  /// The next one; without `requests`, those that nobody has withdrawn are set aside until a call with.
  [[nodiscard]] EventLink take(bool requests);

 private:
  /// Puts a link at the end. `behind` is where it keeps the one behind it, as next() tells of one that was taken.
  void add(EventLink link, std::uint32_t& behind);
  [[nodiscard]] std::uint32_t& next(EventLink link);
  [[nodiscard]] bool is_request(EventLink link) const;
  void set_aside(std::uint32_t request);

  SessionTable& sessions_;
  MessagePool& messages_;
  std::uint32_t first_ = kNone;   ///< in 32 bits, as the links behind it are in messages and sessions
  std::uint32_t* end_ = &first_;  ///< where the link that is added next is put
  MessageList set_aside_;         ///< requests, by event_next
};

}  // namespace warpline::message
