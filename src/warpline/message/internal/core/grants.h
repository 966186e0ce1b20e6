// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/message/internal/core/endpoint_context.h"
#include "warpline/message/internal/core/message_pool.h"
#include "warpline/message/internal/core/session_table.h"
#include "warpline/message/internal/core/timers.h"

namespace warpline::message {

/// Against incast: of a long message its sender sends the first fragment, and the rest as its receiver grants it. What
/// is granted and has not arrived, of all sessions together, is bounded by EndpointConfig::grants; sessions take turns,
/// and in them their messages. What has not moved for long is not counted, so that a sender that is gone holds up
/// nobody. After Homa (Montazeri et al., SIGCOMM 2018), without its priorities.
class Grants {
 public:
  Grants(const EndpointContext& endpoint, SessionTable& sessions, const MessagePool& messages, const Timers& timers)
      : endpoint_(endpoint), messages_(messages), timers_(timers), wanting_(sessions) {}

  // What arrives.
  /// The first of a message or response has come, which has several unless its fragment_bytes is 0.
  void begin(Session& session, Message& message);
  /// All that is granted of it comes once more, in smaller fragments.
  void begin_again(Session& session, Message& message, std::uint16_t fragment_bytes);
  /// Whether arrived() is to be told of what comes behind the first fragment.
  [[nodiscard]] static bool counts(const Message& message) {
    return message.owed != 0 || message.granted < message.in_length;
  }
  void arrived(Session& session, Message& message, std::uint32_t bytes);
  /// Grants on their way were forgotten: as if they had not been given.
  void again(Session& session, Message& message);
  /// The message owes nothing any more.
  void settle(Message& message) {
    if (message.owed != 0) set_owed(message, 0);
  }

  // What is sent.
  [[nodiscard]] bool wanted() const { return !wanting_.empty(); }
  /// Whether a session wants a grant and it may be given now.
  [[nodiscard]] bool due() const;
  /// The session whose turn it is. It wants no grants any more until arrived(), or want().
  Session& take() { return wanting_.take(); }
  void want(Session& session) { wanting_.add(session); }
  /// The session's next message that waits for a grant; kNone if there is none.
  [[nodiscard]] std::uint32_t next_of(Session& session) const;
  /// More of the message is granted, which Message::granted then says.
  void give(const Session& session, Message& message);
  /// There was no place for the packet: nothing is due for a while.
  void pause();

  // Time.
  /// After grants were given: there is a next tick as long as any are wanted.
  void watch();
  [[nodiscard]] Nanos next_tick() const { return tick_at_; }
  void tick();

 private:
  [[nodiscard]] std::uint32_t fragments_of(const Session& session) const;
  [[nodiscard]] Nanos stuck_after(const Session& session) const;
  [[nodiscard]] bool stuck(const Message& message) const;
  void set_owed(Message& message, std::uint32_t bytes);

  const EndpointContext& endpoint_;
  const MessagePool& messages_;
  const Timers& timers_;
  SessionQueue<&Session::wanting_next, &Session::wants_grants> wanting_;
  // What is owed is counted by when it moved last: since the last tick, or since the one before.
  std::uint64_t owed_ = 0;
  std::uint64_t owed_before_ = 0;
  Nanos tick_at_ = kNever;
  Nanos not_before_;
  std::uint8_t epoch_ = 0;
};

}  // namespace warpline::message
