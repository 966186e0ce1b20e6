// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "warpline/message/internal/core/endpoint_core.h"
#include "warpline/message/internal/transfer/transfers.h"
#include "warpline/message/types.h"

namespace warpline::message {

/// Makes of what is in the queue of events what the application is told. Then messages that are over are freed;
/// sessions that it did not open only by the next call, until when it may ask about them.
class EventReader {
 public:
  EventReader(EndpointCore& core, Transfers& transfers) : core_(core), transfers_(transfers) {}

  std::size_t poll(std::span<MessageEvent> events, std::size_t requests);

 private:
  /// False if there is nothing to tell any more.
  [[nodiscard]] bool message_event(std::uint32_t index, MessageEvent& event);
  [[nodiscard]] const ReceivedHead* received_head(const Message& message);
  [[nodiscard]] bool session_event(EventLink link, MessageEvent& event);

  EndpointCore& core_;
  Transfers& transfers_;
  std::uint32_t told_lost_ = kNone;  ///< sessions to be freed, by lost_next
};

}  // namespace warpline::message
