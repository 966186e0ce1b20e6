// SPDX-License-Identifier: Apache-2.0
#include "warpline/service/streams/stream_proxy.h"

#include <span>

namespace warpline::service {

bool StreamProxy::turn(stream::StreamReceiver& receiver, Nanos now) {
  bool worked = transport::receive_into(endpoint_, transport_, now);
  const std::size_t count = transport_.settled() ? endpoint_.poll(events_) : 0;
  for (const message::MessageEvent& event : std::span(events_).first(count)) {
    relay_.handle(receiver, endpoint_, event, now);
  }
  worked = relay_.turn(receiver, endpoint_, now) || worked || count != 0;
  return transport::transmit_from(endpoint_, transport_, clock_) != 0 || worked;
}

std::uint32_t StreamProxy::abort_some(stream::StreamReceiver& receiver, std::uint32_t most, Nanos) {
  const std::uint32_t aborted = relay_.abort_some(receiver, endpoint_, most, clock_.now());
  (void)transport::transmit_from(endpoint_, transport_, clock_);  // the goodbyes
  return aborted;
}

}  // namespace warpline::service
