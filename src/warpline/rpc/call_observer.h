// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/units.h"
#include "warpline/message/types.h"
#include "warpline/rpc/call.h"

namespace warpline::rpc {

/// A peer's request as an observer sees it.
struct ObservedRequest {
  message::SessionId session{};  ///< that it came by
  std::uint16_t code = 0;        ///< as the peer gave it
  std::uint32_t bytes = 0;       ///< of its data
};

/// How a peer's request ended here.
struct ObservedAnswer {
  /// What became of it at this end.
  enum class Outcome : std::uint8_t {
    answered,   ///< the answer was given to the endpoint
    declined,   ///< the handler gave none, or there was no memory for it
    withdrawn,  ///< the peer had given the request up: the answer went nowhere
  };
  Outcome outcome = Outcome::answered;
  std::uint16_t code = 0;   ///< of the answer
  std::uint32_t bytes = 0;  ///< of the answer
  Nanos latency{};          ///< from when the handler's turn came, or its queue's, until the answer was given
};

/// Says what became of a request by what respond() said of its answer.
[[nodiscard]] inline ObservedAnswer observed_answer(message::CallStatus status, std::uint16_t code, std::uint32_t bytes,
                                                    Nanos latency) {
  if (status == message::CallStatus::ok) return {ObservedAnswer::Outcome::answered, code, bytes, latency};
  const bool withdrawn = status == message::CallStatus::unknown_message;
  return {withdrawn ? ObservedAnswer::Outcome::withdrawn : ObservedAnswer::Outcome::declined, 0, 0, latency};
}

/// A call in pieces as an observer sees it, of the end that opened it or of the one that took it.
struct ObservedStream {
  message::SessionId session{};     ///< that it goes by
  std::uint16_t code = 0;           ///< as its opener gave it
  bool served = false;              ///< opened by the peer
  std::uint32_t request_bytes = 0;  ///< of the request that opens it
};

/// How a call in pieces ended here.
struct ObservedStreamEnd {
  message::MessageStatus status = message::MessageStatus::ok;  ///< as CallStream::wait() says it
  std::uint16_t code = 0;                                      ///< of the answer, or a RefusalCode
  std::uint64_t pieces_out = 0;                                ///< given to the endpoint
  std::uint64_t bytes_out = 0;                                 ///< of these
  std::uint64_t pieces_in = 0;                                 ///< arrived, and in order
  std::uint64_t bytes_in = 0;                                  ///< of these
  Nanos latency{};                                             ///< since it was opened, or taken, on the host's thread
};

/// Sees calls and requests begin and end, for logs and metrics: what interceptors of other libraries do that change
/// nothing. All functions are called on the host's thread, which goes on when they return; they throw nothing.
class CallObserver {
 public:
  virtual ~CallObserver() = default;

  // Calls made here.
  /// The host's thread has taken the call; it is before its first packet.
  virtual void call_began(const Call& /*call*/) {}
  /// The call ended; its `done` is called next. `latency`: since submit().
  virtual void call_ended(const Call& /*call*/, const CallResult& /*result*/, Nanos /*latency*/) {}

  // Requests of peers.
  /// The request goes to its handler, or to the queue of a handler thread.
  virtual void request_began(const ObservedRequest& /*request*/) {}
  /// The handler is done with the request.
  virtual void request_ended(const ObservedRequest& /*request*/, const ObservedAnswer& /*answer*/) {}

  // Calls in pieces, opened here or by peers.
  /// The host's thread has taken the order to open it, or hands a peer's to who takes such calls.
  virtual void stream_began(const ObservedStream& /*stream*/) {}
  /// It has ended; who has it may read what had arrived before.
  virtual void stream_ended(const ObservedStream& /*stream*/, const ObservedStreamEnd& /*end*/) {}
};

}  // namespace warpline::rpc
