// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/message/internal/index_pool.h"
#include "warpline/message/internal/session/session_table.h"
#include "warpline/message/internal/transfer/message_pool.h"

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

  void add(std::uint32_t message);
  void add_opened(Session& session);
  /// Nothing if the session was forgotten.
  void add_lost(Session& session);

  /// The next one; without `requests`, those that nobody has withdrawn are set aside until a call with.
  [[nodiscard]] EventLink take(bool requests);

 private:
  void add(EventLink link);
  [[nodiscard]] std::uint32_t& next(EventLink link);
  [[nodiscard]] bool is_request(EventLink link) const;
  void set_aside(std::uint32_t request);

  SessionTable& sessions_;
  MessagePool& messages_;
  EventLink first_;
  EventLink last_;
  MessageList set_aside_;  ///< requests, by event_next
};

}  // namespace warpline::message
