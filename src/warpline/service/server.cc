// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <utility>

#include "warpline/service/app.h"

namespace warpline::service {
namespace {

constexpr Nanos kDrain{500'000'000};  ///< that is waited for clients after the stop

}  // namespace

MessageServer::MessageServer(const MessagePattern& pattern, std::uint32_t longest,
                             const message::EndpointConfig& endpoint, const std::atomic<bool>& stop, MessageStore store)
    : pattern_(pattern), store_(store), longest_(longest), stop_(stop) {
  waiting_.reserve(endpoint.max_messages);
}

void MessageServer::handle(message::Endpoint& endpoint, const message::MessageEvent& event, Nanos now) {
  switch (event.kind) {
    case message::EventKind::accepted:
      tally_.accepted.add(1);
      return;
    case message::EventKind::lost:
      tally_.lost[static_cast<std::size_t>(event.reason)].add(1);
      return;
    case message::EventKind::request:
      serve(endpoint, event, now);
      return;
    case message::EventKind::message:
      tally_.bytes_in.add(event.length);
      (void)endpoint.release(event.id, now);
      return;
    default:
      return;  // what was withdrawn has been answered, or will be
  }
}

void MessageServer::serve(message::Endpoint& endpoint, const message::MessageEvent& event, Nanos now) {
  Answer answer{.request = event.id, .bytes = {}};
  switch (static_cast<MessageService>(event.code)) {
    case MessageService::echo:
      answer.bytes = {event.data, event.length, event.device};
      break;
    case MessageService::sink:
      break;
    case MessageService::sink_hash:
      answer.bytes.length = sizeof(answer.hash);
      if (const std::optional<std::uint64_t> hash = hash_of(event)) {
        answer.hash = *hash;
      } else {
        answer.code = kNotServed;
      }
      break;
    case MessageService::source: {
      SourceRequest wanted;
      if (event.length == sizeof(wanted)) std::memcpy(&wanted, event.data, sizeof(wanted));
      if (event.length != sizeof(wanted) || wanted.length > longest_) {
        answer.code = kNotServed;
      } else {
        const MessagePattern& pattern = store_.pattern == nullptr ? pattern_ : *store_.pattern;
        answer.bytes = {pattern.slice(wanted.sequence), wanted.length, store_.device};
      }
      break;
    }
    default:
      answer.code = kNotServed;
  }
  if (answer.code != kServed) tally_.not_served.add(1);
  tally_.served.add(1);
  tally_.bytes_in.add(event.length);
  tally_.bytes_out.add(answer.bytes.length);
  if (!give(endpoint, answer, now)) waiting_.push_back(answer);
}

/// Nothing where what would look at it has failed. Short ones are in the endpoint's own memory.
std::optional<std::uint64_t> MessageServer::hash_of(const message::MessageEvent& event) {
  const bool stored = event.data >= store_.room.data() && event.data < store_.room.data() + store_.room.size();
  if (store_.hasher == nullptr || !stored) return message_hash(event.data, event.length);
  return store_.hasher->hash(event.data, event.length);
}

/// False if it has to be tried again.
bool MessageServer::give(message::Endpoint& endpoint, const Answer& answer, Nanos now) {
  message::ConstBuffer bytes = answer.bytes;
  if (bytes.data == nullptr) bytes.data = reinterpret_cast<const std::uint8_t*>(&answer.hash);
  const message::CallStatus status = endpoint.respond(answer.request, bytes, {.code = answer.code}, now);
  return status != message::CallStatus::no_memory && status != message::CallStatus::no_slot;
}

bool MessageServer::turn(message::Endpoint& endpoint, Nanos now) {
  if (!waiting_.empty()) {
    const auto given = [&](const Answer& answer) { return give(endpoint, answer, now); };
    waiting_.erase(std::remove_if(waiting_.begin(), waiting_.end(), given), waiting_.end());
  }
  if (!stop_.load(std::memory_order_relaxed)) return true;
  if (!std::exchange(draining_, true)) endpoint.drain(Nanos{now.value + kDrain.value}, now);
  return !endpoint.drained();
}

}  // namespace warpline::service
