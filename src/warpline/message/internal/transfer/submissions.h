// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/message/endpoint.h"
#include "warpline/message/internal/transfer/transfers.h"

namespace warpline {

/// What the application does with messages. endpoint.h says what each call means.
class Submissions {
 public:
  Submissions(EndpointContext& endpoint, SessionTable& sessions, MessagePool& messages, Timers& timers,
              Transfers& transfers)
      : endpoint_(endpoint), sessions_(sessions), messages_(messages), timers_(timers), transfers_(transfers) {}

  Submitted request(SessionId id, ConstBuffer bytes, MutableBuffer response, const RequestOptions& options);
  Submitted send(SessionId id, ConstBuffer bytes, const SendOptions& options);
  CallStatus respond(const MessageId& id, ConstBuffer bytes, const SendOptions& options);
  CallStatus cancel(const MessageId& id);
  CallStatus release(const MessageId& id);

 private:
  [[nodiscard]] Submitted begin_own(SessionId id, TransferRole role, ConstBuffer bytes, bool copy);

  EndpointContext& endpoint_;
  SessionTable& sessions_;
  MessagePool& messages_;
  Timers& timers_;
  Transfers& transfers_;
};

}  // namespace warpline
