// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <span>

#include "warpline/base/units.h"
#include "warpline/message/types.h"

namespace warpline::rpc {

/// A request that any thread gives to a MessageHost.
struct Call {
  message::SessionId session{};    ///< of that host
  message::ConstBuffer message{};  ///< up to kInlineBytes of host memory are copied; longer ones stay untouched until
                                   ///< the call has ended
  message::MutableBuffer response{};  ///< untouched until the call has ended; without data: status and code are enough
  std::uint16_t code = 0;             ///< the application's, handed to the peer with the request
  message::Priority priority = message::Priority::normal;  ///< of the request, and of its response
  std::span<const std::uint8_t>
      metadata{};  ///< likewise, kMaxMetadataBytes at most; untouched until the call has ended
  /// It may be handled more than once without harm. A ServerPool sends such a call again, or twice; nobody else looks.
  bool idempotent = false;
  /// The response may be of any length up to EndpointConfig::max_message_bytes, and brings its metadata: it goes into
  /// the endpoint's memory, or that of its BufferSource, and is given back when CallDone::done has returned. `response`
  /// has no data then. `not_allowed` by ServerPool, PendingCall and CompletionQueue, which tell of ends later than
  /// that.
  bool response_in_endpoint = false;
  Nanos patience = message::kNever;  ///< a duration, from now on, after which it ends with the status `deadline`
};

/// How a call ended. Each one that was accepted ends once.
struct CallResult {
  message::MessageStatus status = message::MessageStatus::ok;  ///< as of a response; `peer_lost` without a session, too
  message::Reach reach = message::Reach::never_sent;           ///< how far it came
  std::uint16_t code = 0;                                      ///< of the peer's application, or a RefusalCode
  const std::uint8_t* data = nullptr;                          ///< first byte of the response, where the call said
  std::uint32_t length = 0;                  ///< bytes at `data`; of a response that is too long, how many it has
  std::span<const std::uint8_t> metadata{};  ///< of a response in the endpoint's memory, and there as long as that
};

/// Whom the end of a call is told: on the thread of the host, which goes on when `done` returns. It may submit calls.
struct CallDone {
  void (*done)(void* context, std::uint64_t tag, const CallResult& result) = nullptr;  ///< throws nothing
  void* context = nullptr;  ///< handed to it; whoever has the call's end to wait for
  std::uint64_t tag = 0;    ///< handed to it; which of the calls
};

/// A call that was submitted. A value: stays safe to use after the call's end, when there is nothing to cancel.
struct CallId {
  std::uint32_t index = std::numeric_limits<std::uint32_t>::max();  ///< below MessageHost::Settings::calls; reused
  std::uint32_t generation = 0;  ///< tells apart the calls that had the index one after another
  auto operator<=>(const CallId&) const = default;
};

/// What submit() returns.
struct SubmittedCall {
  message::CallStatus status = message::CallStatus::ok;  ///< no_memory: as many calls are under way as may be; too_long
  CallId id;                                             ///< meaningful if ok
};

}  // namespace warpline::rpc
