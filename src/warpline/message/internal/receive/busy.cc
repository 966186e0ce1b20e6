// SPDX-License-Identifier: Apache-2.0
// A message for which the receiver has no memory: its sender takes it back as if it had never been sent, so that it
// neither stands in the way of others nor looks like congestion, and tries again later.
#include <algorithm>

#include "warpline/message/internal/state.h"

namespace warpline {

/// Receiver: not acknowledged, so if this is lost the fragment comes again, and so does this.
void EndpointState::tell_busy(Session& session, const MessageFragment& fragment, std::uint16_t refusal) {
  ready_.add(session);
  for (std::uint32_t i = 0; i < session.busy_count; ++i) {
    if (session.busy[i].slot == fragment.slot) {
      session.busy[i] = {fragment.sequence, fragment.slot, refusal};
      return;
    }
  }
  if (session.busy_count == kBusyNotices) return;
  session.busy[session.busy_count++] = {fragment.sequence, fragment.slot, refusal};
}

/// Sender.
void EndpointState::take_busy(Session& session, const MessageFragment& fragment) {
  const std::uint32_t index = transfers_.defer(session, fragment);
  if (index == kNone) return;
  recovery_.take_back(session, index, messages_[index].generation);
  session.unanswered = 0;
  if (has_work(session)) ready_.add(session);
}

}  // namespace warpline
