// SPDX-License-Identifier: Apache-2.0
#include "warpline/service/streams/kept/kept_streams.h"

namespace warpline::service {

using stream::StreamReceiver;

KeptStreams::KeptStreams(const StreamReceiver& receiver, const stream::ReceiverSettings& settings, std::uint64_t chunk,
                         std::shared_ptr<StreamInbox> inbox, std::optional<StreamHome::Gpu> gpu)
    : inbox_(std::move(inbox)),
      home_(std::make_shared<StreamHome>(receiver.rings(), settings, chunk, std::move(gpu))),
      connections_(settings.connections) {
  inbox_->add(home_);
}

bool KeptStreams::turn(StreamReceiver& receiver, Nanos now) {
  bool worked = home_->take_changes([&](std::uint32_t place) { hear(receiver, place, now); });
  while (const auto event = receiver.poll()) {
    handle(receiver, *event);
    worked = true;
  }
  if (std::exchange(told_, false)) inbox_->tell();
  return worked;
}

void KeptStreams::handle(StreamReceiver& receiver, const stream::StreamEvent& event) {
  const std::uint32_t place = event.connection.index;
  Known& connection = connections_[place];
  if (!connection.known || connection.id != event.connection) {
    connection = {.id = event.connection, .known = true};
    home_->begin(place, *receiver.view(event.connection));
    told_ = true;
  }
  told_ = home_->reach(place, connection.released + event.readable, event.state) || told_;
}

/// Does what a connection's keepers have said.
void KeptStreams::hear(StreamReceiver& receiver, std::uint32_t place, Nanos now) {
  Known& connection = connections_[place];
  if (!connection.known) return;  // the run's end was first
  const StreamHome::Said said = home_->said(place);
  (void)receiver.release(connection.id, said.released - std::exchange(connection.released, said.released));
  if (said.end == StreamHome::Said::nothing || !said.rests) return;
  if (said.end == StreamHome::Said::read) {
    receiver.close(connection.id, now);
  } else {
    receiver.abort(connection.id, now);
  }
  connection.known = false;
}

std::uint32_t KeptStreams::abort_some(StreamReceiver& receiver, std::uint32_t most, Nanos now) {
  std::uint32_t aborted = 0;
  for (; aborted < most && next_abort_ < connections_.size(); ++next_abort_) {
    Known& connection = connections_[next_abort_];
    if (!std::exchange(connection.known, false)) continue;
    receiver.abort(connection.id, now);
    ++aborted;
  }
  return aborted;
}

}  // namespace warpline::service
