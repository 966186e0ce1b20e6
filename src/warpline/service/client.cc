// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "warpline/base/units.h"
#include "warpline/service/app.h"

namespace warpline::service {

MessageClient::MessageClient(Plan plan, const MessagePattern& pattern, const std::atomic<bool>& stop,
                             MessageStore store)
    : plan_(std::move(plan)),
      pattern_(pattern),
      store_(store),
      stop_(stop),
      sessions_(plan_.peers.size()),
      random_(plan_.seed) {
  const bool long_answer = plan_.service == MessageService::echo || plan_.service == MessageService::source;
  slots_.resize(sessions_.size() * plan_.outstanding);
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    slots_[i].session = static_cast<std::uint32_t>(i / plan_.outstanding);
    if (long_answer && !store_.room.empty()) {
      const std::size_t each = (std::size_t{plan_.length} + kAlignment - 1) / kAlignment * kAlignment;
      slots_[i].response = {store_.room.data() + i * each, plan_.length, store_.device};
      continue;
    }
    slots_[i].own.resize(long_answer ? plan_.length : sizeof(std::uint64_t));
    slots_[i].response = {slots_[i].own.data(), static_cast<std::uint32_t>(slots_[i].own.size()), false};
  }
  waiting_.reserve(slots_.size());
  pacer_ = RequestPacer(plan_.rate);
  if (pacer_.paces()) idle_.resize(slots_.size());
  if (plan_.reconnect) down_.reserve(sessions_.size());
  tally_.losses.reserve(MessageTally::kMostLosses);
  sessions_alive_ = static_cast<std::uint32_t>(sessions_.size());
}

void MessageClient::begin(message::Endpoint& endpoint, Nanos now) {
  heard_ = now;
  for (std::uint32_t i = 0; i < sessions_.size(); ++i) {
    const message::Opened opened = endpoint.connect(plan_.peers[i], {.context = i}, now);
    sessions_[i].id = opened.session;
    if (opened.status == message::CallStatus::ok) continue;
    sessions_[i].gone = sessions_[i].refused = true;
    refused_.fetch_add(1, std::memory_order_relaxed);
    tally_.lost[static_cast<std::size_t>(message::LossReason::no_answer)].add(1);
    sessions_alive_.fetch_sub(1, std::memory_order_relaxed);
  }
}

void MessageClient::handle(message::Endpoint& endpoint, const message::MessageEvent& event, Nanos now) {
  switch (event.kind) {
    case message::EventKind::response:
      answered(endpoint, event, now);
      return;
    case message::EventKind::connected: {
      const auto session = static_cast<std::uint32_t>(event.context);
      if (sessions_[session].refused) refused_.fetch_sub(1, std::memory_order_relaxed);
      sessions_[session].refused = false;
      sessions_[session].was_up = sessions_[session].up = true;
      sessions_[session].failed = 0;
      tally_.connected.add(1);
      if (pacer_.paces() && !pacer_.started()) pacer_.start(now);
      if (plan_.rounds) {
        if (busy_ == 0) begin_round(endpoint, now);
      } else {
        fill(endpoint, session, now);
      }
      return;
    }
    case message::EventKind::lost:
      session_lost(event, now);
      return;
    case message::EventKind::request:
    case message::EventKind::message:
      (void)endpoint.release(event.id, now);
      return;
    default:
      return;
  }
}

void MessageClient::session_lost(const message::MessageEvent& event, Nanos now) {
  const auto number = static_cast<std::uint32_t>(event.context);
  Session& session = sessions_[number];
  if (event.reason == message::LossReason::closed_here) {
    session.up = false;
    return;
  }
  tally_.lost[static_cast<std::size_t>(event.reason)].add(1);
  if (tally_.losses.size() < MessageTally::kMostLosses) {
    tally_.losses.push_back({.session = plan_.first_session + number,
                             .reason = event.reason,
                             .requests = session.failed,
                             .silent_before = Nanos{std::max<std::int64_t>(0, turned_.value - heard_.value)},
                             .silent = Nanos{now.value - heard_.value}});
  }
  if (!session.was_up && !session.refused) {
    session.refused = true;
    refused_.fetch_add(1, std::memory_order_relaxed);
  }
  session.up = false;
  session.failed = 0;
  if (plan_.reconnect && !stopping_) return reconnect_later(number, now);
  give_up(session);
}

void MessageClient::give_up(Session& session) {
  if (session.gone) return;
  session.gone = true;
  sessions_alive_.fetch_sub(1, std::memory_order_relaxed);
}

/// A server that is full or going away says so at once: who asked again at once would ask without end.
void MessageClient::reconnect_later(std::uint32_t number, Nanos now) {
  const Nanos wait = rpc::wait_after(plan_.back_off, sessions_[number].losses++, random_);
  down_.push_back({.until = time_sum(now, wait), .session = number});
  std::push_heap(down_.begin(), down_.end(), std::greater<>());
}

void MessageClient::reconnect_what_is_due(message::Endpoint& endpoint, Nanos now) {
  while (!down_.empty() && down_.front().until <= now) {
    Session& session = sessions_[down_.front().session];
    std::pop_heap(down_.begin(), down_.end(), std::greater<>());
    down_.pop_back();
    if (endpoint.reconnect(session.id, now) != message::CallStatus::ok) give_up(session);
  }
}

void MessageClient::begin_round(message::Endpoint& endpoint, Nanos now) {
  if (!may_ask()) return;
  round_begun_ = now;
  for (std::uint32_t i = 0; i < sessions_.size(); ++i) fill(endpoint, i, now);
}

void MessageClient::fill(message::Endpoint& endpoint, std::uint32_t session, Nanos now) {
  const std::uint32_t first = session * plan_.outstanding;
  for (std::uint32_t slot = first; slot < first + plan_.outstanding; ++slot) {
    if (slots_[slot].busy) continue;
    if (pacer_.paces()) {
      rest(slot);
    } else if (!ask(endpoint, slot, now)) {
      waiting_.push_back(slot);
    }
  }
}

/// The slot waits for its turn.
void MessageClient::rest(std::uint32_t slot) {
  if (std::exchange(slots_[slot].idle, true)) return;
  idle_[(first_idle_ + idle_count_++) % idle_.size()] = slot;
}

/// The slots take turns. A request that finds none idle is late: it is made as soon as one is, and its latency counts
/// from when it was due, for so long whoever wanted the response has waited.
void MessageClient::ask_what_is_due(message::Endpoint& endpoint, Nanos now) {
  while (idle_count_ != 0 && may_ask() && pacer_.due(next_sequence_, now)) {
    const std::uint32_t number = idle_[first_idle_];
    Slot& slot = slots_[number];
    if (!ask(endpoint, number, now)) return;
    if (slot.busy) {
      slot.begun = pacer_.time_of(slot.sequence);
      tally_.note_submission(now);
    }
    slot.idle = false;  // where its session is not up, until that is again
    first_idle_ = (first_idle_ + 1) % idle_.size();
    --idle_count_;
  }
}

Nanos MessageClient::next_turn() const {
  const bool asks = idle_count_ != 0 && may_ask();
  const Nanos next = asks ? pacer_.time_of(next_sequence_) : MessageApp::next_turn();
  return down_.empty() || stopping_ ? next : std::min(next, down_.front().until);
}

/// False if the slot has to wait for memory. True also if there is nothing to ask.
bool MessageClient::ask(message::Endpoint& endpoint, std::uint32_t number, Nanos now) {
  Slot& slot = slots_[number];
  if (!may_ask() || !sessions_[slot.session].up) return true;
  const std::uint64_t sequence = next_sequence_;
  const SourceRequest source{plan_.length, static_cast<std::uint32_t>(sequence)};
  const MessagePattern& pattern = store_.pattern == nullptr ? pattern_ : *store_.pattern;
  message::ConstBuffer message{pattern.slice(sequence), plan_.length, store_.device};
  if (plan_.service == MessageService::source) {
    message = {reinterpret_cast<const std::uint8_t*>(&source), sizeof(source)};
  }
  const message::Submitted submitted = endpoint.request(
      sessions_[slot.session].id, message, slot.response,
      {.context = number, .code = static_cast<std::uint16_t>(plan_.service), .priority = plan_.priority}, now);
  if (submitted.status == message::CallStatus::no_memory || submitted.status == message::CallStatus::no_slot)
    return false;
  if (submitted.status != message::CallStatus::ok) return true;  // the session's end is on its way
  slot.begun = now;
  slot.sequence = sequence;
  slot.id = submitted.id;
  slot.busy = true;
  ++busy_;
  ++next_sequence_;
  tally_.submitted.add(1);
  return true;
}

/// Byte by byte, or, in memory that is for somebody else to look at, by its hash.
bool MessageClient::same(const message::MutableBuffer& response, const std::uint8_t* expected) const {
  if (store_.hasher == nullptr) return std::memcmp(response.data, expected, plan_.length) == 0;
  return store_.hasher->hash(response.data, plan_.length) == message_hash(expected, plan_.length);
}

bool MessageClient::right(const Slot& slot, const message::MessageEvent& event) const {
  if (event.code != kServed) return false;
  const std::uint8_t* const expected = pattern_.slice(slot.sequence);
  switch (plan_.service) {
    case MessageService::echo:
    case MessageService::source:
      return event.length == plan_.length && same(slot.response, expected);
    case MessageService::sink_hash: {
      const std::uint64_t hash = message_hash(expected, plan_.length);
      return event.length == sizeof(hash) && std::memcmp(slot.response.data, &hash, sizeof(hash)) == 0;
    }
    case MessageService::sink:
      break;
  }
  return event.length == 0;
}

void MessageClient::answered(message::Endpoint& endpoint, const message::MessageEvent& event, Nanos now) {
  const auto number = static_cast<std::uint32_t>(event.context);
  Slot& slot = slots_[number];
  slot.busy = false;
  --busy_;
  tally_.completed[static_cast<std::size_t>(event.status)].add(1);
  if (event.status == message::MessageStatus::ok) [[likely]] {
    sessions_[slot.session].losses = 0;
    if (!plan_.rounds) tally_.latency.record(static_cast<std::uint64_t>(now.value - slot.begun.value));
    tally_.bytes_out.add(plan_.service == MessageService::source ? sizeof(SourceRequest) : plan_.length);
    tally_.bytes_in.add(event.length);
    if (plan_.verify) {
      tally_.checked.add(1);
      if (!right(slot, event)) tally_.bad.add(1);
    }
  } else if (event.status == message::MessageStatus::peer_lost) {
    ++sessions_[slot.session].failed;
  }
  if (!plan_.rounds) {
    if (pacer_.paces()) {
      rest(number);
    } else if (!ask(endpoint, number, now)) {
      waiting_.push_back(number);
    }
    return;
  }
  if (busy_ != 0) return;
  tally_.latency.record(static_cast<std::uint64_t>(now.value - round_begun_.value));
  begin_round(endpoint, now);
}

bool MessageClient::turn(message::Endpoint& endpoint, Nanos now) {
  turned_ = now;
  if (!waiting_.empty()) {
    const auto asked = [&](std::uint32_t slot) { return ask(endpoint, slot, now); };
    waiting_.erase(std::remove_if(waiting_.begin(), waiting_.end(), asked), waiting_.end());
  }
  if (pacer_.paces()) ask_what_is_due(endpoint, now);
  const bool enough = plan_.requests != 0 && next_sequence_ >= plan_.requests;
  if (!stopping_ && (enough || stop_.load(std::memory_order_relaxed) || !alive())) {
    stopping_ = true;
    stopped_at_ = now;
  }
  if (!stopping_) {
    reconnect_what_is_due(endpoint, now);
    return true;
  }
  if (busy_ == 0) {
    // So many turns more as it takes until all peers are notified, within `drain`.
    if (cancelled_) return endpoint.next_deadline() <= now && now.value - stopped_at_.value <= plan_.drain.value;
    cancelled_ = true;
    for (const Session& session : sessions_) {
      if (session.up) (void)endpoint.close(session.id, now);
    }
    return true;
  }
  // With a bound nothing is cut off: what does not end by itself ends with its session.
  const bool overdue = !enough && now.value - stopped_at_.value > plan_.drain.value;
  if (overdue && !cancelled_) {
    for (const Slot& slot : slots_) {
      if (slot.busy) (void)endpoint.cancel(slot.id, now);
    }
  }
  return true;
}

}  // namespace warpline::service
