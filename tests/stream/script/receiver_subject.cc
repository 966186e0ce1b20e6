// SPDX-License-Identifier: Apache-2.0
#include "receiver_subject.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "warpline/packet/parse.h"

namespace warpline::stream_script {
namespace {

FrameBytes without_padding(FrameBytes frame) {
  ::warpline::Segment piece{frame.data(), static_cast<std::uint32_t>(frame.size()), 0, Verdict::forward};
  const packet::ParsedFrame parsed = packet::parse(frame_at(&piece));
  frame.resize(parsed.payload_offset + parsed.payload_length);
  return frame;
}

}  // namespace

stream::ReceiverSettings ReceiverSubject::settings_of(const Script& script) {
  stream::ReceiverSettings settings = script.settings;
  settings.mac = stream::testing::kOurMac;
  settings.address = ScriptWire::address(script.ipv6, true);
  settings.ports = {ScriptWire::kPort};
  return settings;
}

Result<std::unique_ptr<ReceiverSubject>> ReceiverSubject::create(const Script& script) {
  WARPLINE_TRY(stream::StreamReceiver receiver, stream::StreamReceiver::create(settings_of(script), Nanos{kBegin}));
  return std::unique_ptr<ReceiverSubject>(new ReceiverSubject(std::move(receiver), nullptr));
}

Result<std::unique_ptr<ReceiverSubject>> LaneSubject::create(const Script& script, bool acknowledges,
                                                             std::uint32_t queue_slots) {
  stream::ReceiverSettings settings = settings_of(script);
  settings.lane_acknowledges = acknowledges;
  // Whichever bursts a script has, they are bursts of the lane, too.
  const stream::LaneShape shape = stream::lane_shape(settings, stream::LaneShape::kMostBurst, 2, queue_slots);
  WARPLINE_TRY(std::unique_ptr<stream::testing::StepLane> lane, stream::testing::StepLane::create(shape));
  stream::testing::StepLane* const steps = lane.get();
  WARPLINE_TRY(stream::StreamReceiver receiver,
               stream::StreamReceiver::create(settings, Nanos{kBegin}, std::move(lane)));
  return std::unique_ptr<ReceiverSubject>(new LaneSubject(std::move(receiver), steps));
}

void ReceiverSubject::end_burst() {
  if (!std::exchange(in_burst_, false)) return;
  receiver_.end_burst(now_);
  if (lane_ != nullptr) run_lane();
  poll();
}

/// A frame that finishes a handshake goes to the lane a second time.
void ReceiverSubject::run_lane() {
  while (receiver_.in_flight() != 0) {
    receiver_.end_burst(now_);
    while (lane_->step()) {
    }
    std::array<stream::PostedFrame, 8> posted;
    while (const std::uint32_t count = receiver_.has_queues() ? receiver_.take_posted(posted) : 0) {
      for (std::uint32_t i = 0; i < count; ++i) {
        const auto* const bytes = static_cast<const FrameBytes*>(posted[i].token)->data();
        posted_.push_back(without_padding({bytes, bytes + posted[i].length}));
        take_back(posted[i].token);
      }
    }
    receiver_.collect(nullptr, now_);
  }
  std::array<void*, stream::LaneShape::kMostBurst> tokens;
  while (const std::uint32_t count = receiver_.take_back(tokens)) {
    for (std::uint32_t i = 0; i < count; ++i) take_back(tokens[i]);
  }
}

void ReceiverSubject::take_back(void* token) {
  std::erase_if(lent_, [token](const FrameBytes& frame) { return &frame == token; });
}

/// Remembers which connection is whose, as an application does.
void ReceiverSubject::poll() {
  while (const auto event = receiver_.poll()) {
    const auto view = receiver_.view(event->connection);
    if (view) heard_of_[view->peer.port - 40000U] = event->connection;
  }
}

void ReceiverSubject::wait_until(Nanos time) {
  end_burst();
  now_ = std::max(now_, Nanos{kBegin + time.value});
  if (receiver_.next_deadline() <= now_) receiver_.advance(now_);
}

void ReceiverSubject::inject(FrameBytes frame) {
  in_burst_ = true;
  const auto length = static_cast<std::uint32_t>(frame.size());
  FrameBytes& bytes = lane_ != nullptr ? lent_.emplace_back(std::move(frame)) : frame;
  bytes.resize(std::max<std::size_t>(length, stream::StreamReceiver::kReplyBytes));
  ::warpline::Segment piece{bytes.data(), length, 0, Verdict::forward};
  if (lane_ != nullptr) {
    receiver_.give(frame_at(&piece), false, &bytes, true);
  } else {
    receiver_.receive(frame_at(&piece), false, now_);
  }
}

std::optional<FrameBytes> ReceiverSubject::receive(Nanos until) {
  end_burst();
  const Nanos limit{kBegin + until.value};
  for (;;) {
    if (!posted_.empty()) {
      sent_.push_back(std::move(posted_.front()));
      posted_.pop_front();
      return sent_.back();
    }
    FrameBytes frame(stream::StreamReceiver::kReplyBytes);
    if (const std::uint32_t length = receiver_.next_reply(frame, now_); length != 0) {
      frame.resize(length);
      sent_.push_back(frame);
      return frame;
    }
    const Nanos due = receiver_.next_deadline();
    if (due > limit) {
      now_ = std::max(now_, limit);
      return std::nullopt;
    }
    now_ = std::max(now_, due);
    receiver_.advance(now_);
    poll();
  }
}

std::string ReceiverSubject::act(const Action& action) {
  end_burst();
  poll();
  switch (action.kind) {
    case Action::Kind::accept:
      return accept(action);
    case Action::Kind::connections:
      if (receiver_.connections() == action.number) return {};
      return fmt::format("there are {} connections", receiver_.connections());
    case Action::Kind::count:
      for (std::size_t i = 0; i < stream::kDispositions; ++i) {
        const auto disposition = static_cast<stream::Disposition>(i);
        const std::uint64_t count = receiver_.counters().get(disposition);
        if (stream::name(disposition) == action.name && count != action.number) return fmt::format("it is {}", count);
      }
      return {};
    default:
      break;
  }
  const auto found = accepted_.find(action.peer);
  if (found == accepted_.end()) return "the connection was not accepted";
  const stream::ConnectionId id = found->second;
  if (action.kind == Action::Kind::close || action.kind == Action::Kind::abort) {
    action.kind == Action::Kind::close ? receiver_.close(id, now_) : receiver_.abort(id, now_);
    accepted_.erase(found);
    heard_of_.erase(action.peer);
    return {};
  }
  return action.kind == Action::Kind::read ? read(action, id) : look(action, id);
}

std::string ReceiverSubject::accept(const Action& action) {
  const auto found = heard_of_.find(action.peer);
  if (found == heard_of_.end()) return "there is no connection";
  accepted_[action.peer] = found->second;
  return {};
}

std::string ReceiverSubject::look(const Action& action, stream::ConnectionId id) {
  const auto view = receiver_.view(id);
  if (!view) return "the connection is gone";
  const auto state_is = [&](stream::ConnectionState state) {
    return view->state == state ? std::string{} : fmt::format("the connection is {}", name(view->state));
  };
  switch (action.kind) {
    case Action::Kind::readable:
      if (view->bytes.size() == action.number) return {};
      return fmt::format("{} bytes can be read", view->bytes.size());
    case Action::Kind::eof:
      if (!view->bytes.empty()) return fmt::format("{} bytes are left", view->bytes.size());
      return state_is(stream::ConnectionState::finished);
    case Action::Kind::reset:
      return state_is(stream::ConnectionState::reset);
    case Action::Kind::timed_out:
      return state_is(stream::ConnectionState::timed_out);
    case Action::Kind::urgent:
      if (view->urgent_end == action.number) return {};
      return fmt::format("bytes up to {} are urgent", view->urgent_end);
    default:
      return "this is no look at a connection";
  }
}

std::string ReceiverSubject::read(const Action& action, stream::ConnectionId id) {
  const auto view = receiver_.view(id);
  if (!view) return "the connection is gone";
  if (view->bytes.size() < action.number) return fmt::format("{} bytes can be read", view->bytes.size());
  for (std::size_t i = 0; i < action.number; ++i) {
    const std::uint8_t right = action.fill.value_or(stream::testing::pattern_at(view->begin + i));
    if (view->bytes[i] != right) return fmt::format("byte {} of the stream is wrong", view->begin + i);
  }
  return receiver_.release(id, action.number) ? std::string{} : "what was read cannot be given back";
}

}  // namespace warpline::stream_script
