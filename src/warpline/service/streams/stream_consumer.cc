// SPDX-License-Identifier: Apache-2.0
#include "warpline/service/streams/stream_consumer.h"

#include <algorithm>

namespace warpline::service {

using stream::ConnectionState;
using stream::StreamReceiver;

StreamConsumer::StreamConsumer(std::uint32_t connections, std::uint64_t ring_bytes, StreamWriter* writer,
                               StreamCheck* check, std::uint64_t chunk)
    : writer_(writer),
      check_(check),
      largest_(ring_bytes / StreamWriter::kPieces),
      chunks_(connections, chunk),
      outlets_(connections) {}

bool StreamConsumer::turn(StreamReceiver& receiver, Nanos now) {
  bool worked = false;
  StreamWriter::Done answer;
  while (writer_ != nullptr && writer_->done(answer)) {
    take_answer(receiver, answer, now);
    worked = true;
  }
  while (const auto event = receiver.poll()) {
    handle(receiver, *event, now);
    worked = true;
  }
  if (chunks_.finished()) [[unlikely]]
    take_rest(receiver, now);
  return worked;
}

/// At the end, when no events tell of what was held back.
void StreamConsumer::take_rest(StreamReceiver& receiver, Nanos now) {
  for (Outlet& outlet : outlets_) {
    if (!outlet.known) continue;
    if (writer_ != nullptr) {
      submit(receiver, outlet, now);
    } else if (const auto view = receiver.view(outlet.id)) {
      take(receiver, outlet, view->bytes.size(), now);
    }
  }
}

void StreamConsumer::handle(StreamReceiver& receiver, const stream::StreamEvent& event, Nanos now) {
  Outlet& outlet = outlets_[event.connection.index];
  if (!outlet.known || outlet.id != event.connection) {
    outlet = {.id = event.connection, .known = true};
    chunks_.begin(event.connection.index);
    if (writer_ != nullptr) {
      const auto view = receiver.view(event.connection);
      writer_->begin(event.connection.index, view->peer, view->local);
    }
  }
  if (writer_ != nullptr) {
    submit(receiver, outlet, now);
    return;
  }
  take(receiver, outlet, event.readable, now);
  if (event.state == ConnectionState::open) return;
  receiver.close(event.connection, now);
  outlet.known = false;
}

/// Takes what chunks there are among so many bytes that can be read.
void StreamConsumer::take(StreamReceiver& receiver, Outlet& outlet, std::uint64_t readable, Nanos now) {
  const auto view = receiver.view(outlet.id);
  const bool ended = view->state != ConnectionState::open;
  const std::uint64_t bytes = chunks_.reach(outlet.id.index, view->begin + readable, ended, now) - view->begin;
  if (check_ != nullptr) check_->take(*view, bytes);
  receiver.release(outlet.id, bytes);
}

void StreamConsumer::take_answer(StreamReceiver& receiver, const StreamWriter::Done& answer, Nanos now) {
  Outlet& outlet = outlets_[answer.connection];
  --unanswered_;
  if (answer.ended) {
    receiver.close(outlet.id, now);
    outlet.known = false;
    return;
  }
  --outlet.pieces;
  receiver.release(outlet.id, answer.length);
  submit(receiver, outlet, now);
}

void StreamConsumer::submit(StreamReceiver& receiver, Outlet& outlet, Nanos now) {
  const auto view = receiver.view(outlet.id);
  const std::uint64_t end =
      chunks_.reach(outlet.id.index, view->begin + view->bytes.size(), view->state != ConnectionState::open, now);
  while (outlet.pieces < StreamWriter::kPieces && outlet.submitted < end) {
    const std::uint64_t length = std::min(end - outlet.submitted, largest_);
    writer_->write(outlet.id.index, view->bytes.subspan(outlet.submitted - view->begin, length));
    outlet.submitted += length;
    ++outlet.pieces;
    ++unanswered_;
  }
  if (view->state == ConnectionState::open || outlet.submitted < end || outlet.ending) return;
  writer_->end(outlet.id.index);
  outlet.ending = true;
  ++unanswered_;
}

std::uint32_t StreamConsumer::abort_some(StreamReceiver& receiver, std::uint32_t most, Nanos now) {
  std::uint32_t aborted = 0;
  for (; aborted < most && next_abort_ < outlets_.size(); ++next_abort_) {
    Outlet& outlet = outlets_[next_abort_];
    if (!outlet.known) continue;
    receiver.abort(outlet.id, now);
    outlet.known = false;
    ++aborted;
  }
  return aborted;
}

}  // namespace warpline::service
