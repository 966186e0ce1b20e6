// SPDX-License-Identifier: Apache-2.0
#include "warpline/daemon/broker.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace warpline::daemon {
namespace {

using client::AreaCompletion;
using client::CompletionKind;
using client::Operation;
using client::Submission;
using message::CallStatus;
using message::EventKind;
using message::MessageEvent;
using State = Attachment::Request::State;

constexpr std::size_t kCodes = 0x10000;
constexpr std::uint64_t kBytesACode = 2 * sizeof(std::uint16_t);  ///< of the table of owners: read, then written

AreaCompletion completion_of(CompletionKind kind, std::uint64_t tag) {
  AreaCompletion completion;
  completion.kind = kind;
  completion.tag = tag;
  return completion;
}

/// How a call ends that the endpoint did not take: the session is gone, the peer is going, or there is no room.
std::uint8_t status_of(CallStatus refusal) {
  if (refusal == CallStatus::unknown_session) return static_cast<std::uint8_t>(message::MessageStatus::peer_lost);
  return refusal == CallStatus::going_away ? client::kGoingAway : client::kNoMemory;
}

}  // namespace

Broker::Broker(message::Endpoint& endpoint, const message::EndpointConfig& config, const DaemonSettings& settings)
    : endpoint_(endpoint),
      connect_cost_(config.protection != nullptr ? kBytesATurn : 0),
      clients_(settings.clients),
      incoming_(config.max_messages),
      owners_(kCodes) {}

void Broker::attach(Attachment& client) {
  *std::ranges::find(clients_, nullptr) = &client;
  ++present_;
}

std::uint32_t Broker::index_of(const Attachment& client) const {
  return static_cast<std::uint32_t>(std::ranges::find(clients_, &client) - clients_.begin());
}

Attachment* Broker::client_of(std::uint64_t context, std::uint32_t& index) const {
  if (context >> 32 == 0) return nullptr;  // a session of a peer
  index = static_cast<std::uint32_t>((context >> 32) - 1);
  return clients_[index];
}

void Broker::leave(Attachment& client, Nanos now) {
  if (!client.leaving) depart(index_of(client), now);
}

void Broker::leave_all(Nanos now) {
  for (std::uint32_t i = 0; i < clients_.size(); ++i) {
    if (clients_[i] != nullptr && !clients_[i]->leaving) depart(i, now);
  }
}

void Broker::depart(std::uint32_t index, Nanos now) {
  Attachment& client = *clients_[index];
  client.leaving = true;
  if (client.listens) std::ranges::replace(owners_, static_cast<std::uint16_t>(index + 1), std::uint16_t{0});
  while (client.waiting_count != 0) {
    const MessageEvent event = client.waiting[client.first_waiting];
    client.first_waiting = (client.first_waiting + 1) % static_cast<std::uint32_t>(client.waiting.size());
    --client.waiting_count;
    incoming_[event.id.index] = {};
    (void)endpoint_.release(event.id, now);
    if (event.kind == EventKind::request) client.counters.declined.add(1);
  }
  for (std::uint32_t slot = 0; slot < client.requests.size(); ++slot) {
    const State state = client.requests[slot].state;
    if (state == State::with_client || state == State::waiting) give_back(index, slot, now);
  }
  for (std::uint32_t session = 0; session < client.sessions.size(); ++session) close(client, session, now);
}

Attachment* Broker::done_with() {
  for (Attachment*& client : clients_) {
    if (client == nullptr || !client->leaving || client->under_way != 0) continue;
    --present_;
    return std::exchange(client, nullptr);
  }
  return nullptr;
}

std::uint32_t Broker::calls_under_way() const {
  std::uint32_t sum = 0;
  for (const Attachment* const client : clients_) {
    if (client == nullptr) continue;
    const auto open = std::ranges::count_if(client->sessions, &Attachment::Session::open);
    sum += client->under_way - static_cast<std::uint32_t>(open);
  }
  return sum;
}

void Broker::notify() {
  for (Attachment* const client : clients_) {
    if (client != nullptr) client->notify();
  }
}

void Broker::set_sleeping(bool sleeps) {
  for (Attachment* const client : clients_) {
    if (client != nullptr) client->set_sleeping(sleeps);
  }
}

bool Broker::has_submissions() const {
  return std::ranges::any_of(clients_, [](const Attachment* client) {
    return client != nullptr && !client->leaving && client->has_submissions();
  });
}

bool Broker::turn(Nanos now) {
  bool worked = false;
  const auto count = static_cast<std::uint32_t>(clients_.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t index = (first_ + i) % count;
    if (clients_[index] != nullptr && !clients_[index]->leaving) worked = serve(index, now) || worked;
  }
  first_ = (first_ + 1) % count;
  return worked;
}

bool Broker::serve(std::uint32_t index, Nanos now) {
  Attachment& client = *clients_[index];
  if (client.answers_waiting != 0) give_waiting_answers(index, now);
  std::uint64_t bytes = 0;
  int taken = 0;
  while (taken < kSubmissionsATurn && bytes < kBytesATurn) {
    const std::optional<Submission> submission = client.take();
    if (!submission) break;
    ++taken;
    bytes += do_one(index, *submission, now);
  }
  if (client.misdeed() == Misdeed::none) return taken != 0;
  client.expelled_for.store(static_cast<std::uint8_t>(client.misdeed()), std::memory_order_relaxed);
  counters_.expelled.add(1);
  client.tell_end(client::AreaEnd::expelled);
  depart(index, now);
  return true;
}

/// Returns the cost for the client's share of the turn: bytes copied, or work that takes about as long.
std::uint64_t Broker::do_one(std::uint32_t index, const Submission& submission, Nanos now) {
  Attachment& client = *clients_[index];
  switch (submission.operation) {
    case Operation::connect:
      connect(index, submission, now);
      return connect_cost_;
    case Operation::close:
      close(client, submission.session, now);
      return 0;
    case Operation::request:
    case Operation::send:
      begin_call(index, submission, now);
      return submission.length;
    case Operation::cancel:
      if (client.calls[submission.slot].busy) (void)endpoint_.cancel(client.calls[submission.slot].id, now);
      return 0;
    case Operation::listen:
      listen(index, submission);
      return submission.length * kBytesACode;
    case Operation::answer:
      answer(index, submission, now);
      return submission.length;
    case Operation::release:
      give_back(index, submission.slot, now);
      return 0;
  }
  return 0;  // take() hands out no other
}

void Broker::connect(std::uint32_t index, const Submission& submission, Nanos now) {
  Attachment& client = *clients_[index];
  message::PeerAddress peer;
  std::memcpy(peer.ip.data(), submission.address, peer.ip.size());
  peer.port = submission.port;
  peer.scope = submission.scope;
  const message::SessionOptions options{context_of(index, submission.session),
                                        (submission.flags & client::kOrderedFlag) != 0};
  const message::Opened opened = endpoint_.connect(peer, options, now);
  if (opened.status != CallStatus::ok) {
    AreaCompletion lost = completion_of(CompletionKind::lost, submission.tag);
    lost.session = submission.session;
    lost.status = client::kNoMemory;
    client.publish(lost);
    return;
  }
  client.sessions[submission.session] = {opened.session, submission.tag, true, false};
  client.counters.sessions_opened.add(1);
  ++client.under_way;
}

void Broker::close(Attachment& client, std::uint32_t session, Nanos now) {
  Attachment::Session& own = client.sessions[session];
  if (!own.open || own.closing) return;  // it was lost meanwhile, say
  own.closing = true;
  (void)endpoint_.close(own.id, now);  // ends with `lost`
}

void Broker::begin_call(std::uint32_t index, const Submission& submission, Nanos now) {
  Attachment& client = *clients_[index];
  const bool one_way = submission.operation == Operation::send;
  const Attachment::Session& session = client.sessions[submission.session];
  message::Submitted submitted{CallStatus::unknown_session, {}};
  if (session.open && !session.closing) {
    const message::ConstBuffer bytes = client.stage_call(submission.slot, submission.length);
    const std::uint64_t context = context_of(index, submission.slot);
    const bool high = (submission.flags & client::kHighFlag) != 0;
    const message::Priority priority = high ? message::Priority::high : message::Priority::normal;
    if (one_way) {
      submitted =
          endpoint_.send(session.id, bytes, {.context = context, .code = submission.code, .priority = priority}, now);
    } else {
      message::RequestOptions options{.context = context, .code = submission.code, .priority = priority};
      if (submission.patience > 0 && submission.patience < message::kNever.value - now.value)
        options.deadline = Nanos{now.value + submission.patience};
      submitted = endpoint_.request(session.id, bytes, client.response_room(submission.slot), options, now);
    }
  }
  if (submitted.status == CallStatus::ok) {
    client.calls[submission.slot] = {submitted.id, submission.tag, submission.session, true, one_way};
    client.counters.bytes_out.add(submission.length);
    if (!one_way) client.counters.submitted.add(1);
    ++client.under_way;
    return;
  }
  client.counters.turned_away.add(1);
  AreaCompletion end = completion_of(one_way ? CompletionKind::sent : CompletionKind::response, submission.tag);
  end.slot = submission.slot;
  end.session = submission.session;
  end.status = status_of(submitted.status);
  client.publish(end);
}

void Broker::listen(std::uint32_t index, const Submission& submission) {
  const auto own = static_cast<std::uint16_t>(index + 1);
  const auto codes = std::span(owners_).subspan(submission.code, submission.length);
  AreaCompletion told = completion_of(CompletionKind::listening, submission.tag);
  if (std::ranges::all_of(codes, [&](std::uint16_t owner) { return owner == 0 || owner == own; })) {
    std::ranges::fill(codes, own);
    clients_[index]->listens = true;
  } else {
    told.status = client::kInUse;
  }
  clients_[index]->publish(told);
}

void Broker::answer(std::uint32_t index, const Submission& submission, Nanos now) {
  Attachment& client = *clients_[index];
  Attachment::Request& request = client.requests[submission.slot];
  request.code = submission.code;
  request.length = submission.length;
  (void)client.stage_answer(submission.slot, submission.length);
  client.counters.answered.add(1);
  client.counters.bytes_out.add(submission.length);
  give_answer(index, submission.slot, now);
}

/// The answer lies where the client does not reach.
void Broker::give_answer(std::uint32_t index, std::uint32_t slot, Nanos now) {
  Attachment& client = *clients_[index];
  Attachment::Request& request = client.requests[slot];
  const bool waited = request.state == State::waiting;
  const message::SendOptions options{.context = context_of(index, slot), .code = request.code};
  const CallStatus status = endpoint_.respond(request.id, client.staged_answer(slot, request.length), options, now);
  if (status == CallStatus::no_memory || status == CallStatus::no_slot) {
    if (!waited) ++client.answers_waiting;
    request.state = State::waiting;
    return;
  }
  if (waited) --client.answers_waiting;
  if (status == CallStatus::ok && request.length > message::kInlineBytes) {
    request.state = State::answering;  // until it is `sent`
    ++client.under_way;
  } else {
    free_request(index, slot, now);
  }
}

/// Tries some of them, and the next ones in the next turn: a client's share of a turn does not grow with their number.
void Broker::give_waiting_answers(std::uint32_t index, Nanos now) {
  Attachment& client = *clients_[index];
  const auto slots = static_cast<std::uint32_t>(client.requests.size());
  int tries = kSubmissionsATurn;
  for (std::uint32_t i = 0; i < slots && tries != 0 && client.answers_waiting != 0; ++i) {
    const std::uint32_t slot = client.next_answer;
    client.next_answer = (slot + 1) % slots;
    if (client.requests[slot].state != State::waiting) continue;
    --tries;
    give_answer(index, slot, now);
  }
}

/// A request is declined, a message done with.
void Broker::give_back(std::uint32_t index, std::uint32_t slot, Nanos now) {
  Attachment& client = *clients_[index];
  const Attachment::Request request = client.requests[slot];
  if (request.state == State::waiting) --client.answers_waiting;
  if (!request.one_way) client.counters.declined.add(1);
  (void)endpoint_.release(request.id, now);
  free_request(index, slot, now);
}

/// The slot is free for what has waited longest.
void Broker::free_request(std::uint32_t index, std::uint32_t slot, Nanos now) {
  Attachment& client = *clients_[index];
  incoming_[client.requests[slot].id.index] = {};
  client.requests[slot].state = State::free;
  client.free_requests.push_back(slot);
  if (client.leaving || client.waiting_count == 0) return;
  const MessageEvent next = client.waiting[client.first_waiting];
  client.first_waiting = (client.first_waiting + 1) % static_cast<std::uint32_t>(client.waiting.size());
  --client.waiting_count;
  client.free_requests.pop_back();
  deliver(index, slot, next, now);
}

void Broker::handle(const MessageEvent& event, Nanos now) {
  std::uint32_t index = kNobody;
  const auto slot = static_cast<std::uint32_t>(event.context);
  switch (event.kind) {
    case EventKind::connected:
      if (Attachment* const client = client_of(event.context, index)) {
        AreaCompletion connected = completion_of(CompletionKind::connected, client->sessions[slot].tag);
        connected.session = slot;
        client->publish(connected);
      }
      return;
    case EventKind::lost:
      counters_.lost[static_cast<std::size_t>(event.reason)].add(1);
      if (Attachment* const client = client_of(event.context, index)) end_session(*client, slot, event, now);
      return;
    case EventKind::response:
      if (Attachment* const client = client_of(event.context, index)) end_call(*client, slot, event);
      return;
    case EventKind::sent:
      if (Attachment* const client = client_of(event.context, index)) {
        if (!event.id.incoming) {
          end_call(*client, slot, event);
        } else {
          --client->under_way;
          free_request(index, slot, now);
        }
      }
      return;
    case EventKind::request:
    case EventKind::message:
      take_in(event, now);
      return;
    case EventKind::withdrawn:
      withdraw(event, now);
      return;
    case EventKind::accepted:
      return;
    case EventKind::stream_request:  // refused by the endpoint: EndpointConfig::streams is false
    case EventKind::stream_piece:
      (void)endpoint_.release(event.id, now);
      return;
  }
}

void Broker::end_session(Attachment& client, std::uint32_t session, const MessageEvent& event, Nanos now) {
  Attachment::Session& own = client.sessions[session];
  AreaCompletion lost = completion_of(CompletionKind::lost, own.tag);
  lost.session = session;
  lost.reason = static_cast<std::uint8_t>(event.reason);
  (void)endpoint_.forget(event.session, now);
  own = {};
  --client.under_way;
  client.publish(lost);
}

void Broker::end_call(Attachment& client, std::uint32_t slot, const MessageEvent& event) {
  Attachment::Call& call = client.calls[slot];
  AreaCompletion end = completion_of(call.one_way ? CompletionKind::sent : CompletionKind::response, call.tag);
  end.slot = slot;
  end.session = call.session;
  end.status = static_cast<std::uint8_t>(event.status);
  end.reach = static_cast<std::uint8_t>(event.reach);
  end.code = event.code;
  end.length = event.length;
  call.busy = false;
  --client.under_way;
  if (call.one_way) {
    client.counters.sent.add(1);
  } else {
    client.counters.completed[static_cast<std::size_t>(event.status)].add(1);
    if (event.status == message::MessageStatus::ok) client.counters.bytes_in.add(event.length);
  }
  client.publish(end);
}

/// Something of a peer: to whoever listens for its code.
void Broker::take_in(const MessageEvent& event, Nanos now) {
  const std::uint16_t owner = owners_[event.code];
  if (owner == 0) {
    counters_.no_service.add(1);
    (void)endpoint_.release(event.id, now);
    return;
  }
  const auto index = static_cast<std::uint32_t>(owner - 1);
  Attachment& client = *clients_[index];
  if (!client.free_requests.empty()) {
    const std::uint32_t slot = client.free_requests.back();
    client.free_requests.pop_back();
    deliver(index, slot, event, now);
    return;
  }
  if (client.waiting_count == client.waiting.size()) {
    client.counters.overflowed.add(1);
    (void)endpoint_.release(event.id, now);
    return;
  }
  const std::uint32_t place =
      (client.first_waiting + client.waiting_count++) % static_cast<std::uint32_t>(client.waiting.size());
  client.waiting[place] = event;
  incoming_[event.id.index] = {index, kQueued};
}

void Broker::deliver(std::uint32_t index, std::uint32_t slot, const MessageEvent& event, Nanos now) {
  Attachment& client = *clients_[index];
  const bool one_way = event.kind == EventKind::message;
  client.requests[slot] = {State::with_client, one_way, 0, 0, event.id};
  incoming_[event.id.index] = {index, slot};
  client.deliver(slot, {event.data, event.length});
  AreaCompletion told = completion_of(one_way ? CompletionKind::message : CompletionKind::request, 0);
  told.slot = slot;
  told.length = event.length;
  told.code = event.code;
  if (event.deadline() != message::kNever)
    told.time_left = std::max<std::int64_t>(event.deadline().value - now.value, 1);
  const message::PeerAddress peer = endpoint_.facts(event.session).peer;
  std::memcpy(told.address, peer.ip.data(), peer.ip.size());
  told.port = peer.port;
  client.counters.delivered.add(1);
  client.counters.bytes_in.add(event.length);
  client.publish(told);
}

/// The peer has given a request up.
void Broker::withdraw(const MessageEvent& event, Nanos now) {
  const Place place = incoming_[event.id.index];
  if (place.client == kNobody) return;  // it was given back, or answered, just before
  Attachment& client = *clients_[place.client];
  if (place.slot != kQueued) {
    if (client.requests[place.slot].state != State::with_client) return;
    AreaCompletion told = completion_of(CompletionKind::withdrawn, 0);
    told.slot = place.slot;
    client.publish(told);
    return;
  }
  const auto size = static_cast<std::uint32_t>(client.waiting.size());
  const auto at = [&](std::uint32_t i) -> MessageEvent& { return client.waiting[(client.first_waiting + i) % size]; };
  std::uint32_t found = 0;
  while (found < client.waiting_count && at(found).id != event.id) ++found;
  if (found == client.waiting_count) return;
  for (std::uint32_t i = found; i + 1 < client.waiting_count; ++i) at(i) = at(i + 1);
  --client.waiting_count;
  incoming_[event.id.index] = {};
  client.counters.declined.add(1);
  (void)endpoint_.release(event.id, now);
}

}  // namespace warpline::daemon
