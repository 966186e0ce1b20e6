// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/message/endpoint.h"
#include "warpline/message/internal/core/endpoint_core.h"
#include "warpline/message/internal/transfer/transfers.h"

namespace warpline::message {

/// What the application does with messages. endpoint.h says what each call means.
class Submissions {
 public:
  Submissions(EndpointCore& core, Transfers& transfers) : core_(core), transfers_(transfers) {}

  Submitted request(SessionId id, ConstBuffer bytes, MutableBuffer response, const RequestOptions& options);
  Submitted send(SessionId id, ConstBuffer bytes, const SendOptions& options);
  CallStatus respond(const MessageId& id, ConstBuffer bytes, const SendOptions& options);
  CallStatus cancel(const MessageId& id);
  CallStatus release(const MessageId& id);

 private:
  /// `set_out(Message&, Session&)` says what is sent, and returns a CallStatus.
  template <typename SetOut>
  [[nodiscard]] Submitted begin_own(SessionId id, TransferRole role, bool of_open_stream, const SetOut& set_out);

  EndpointCore& core_;
  Transfers& transfers_;
};

}  // namespace warpline::message
