// SPDX-License-Identifier: Apache-2.0
#include "sim/applications/rpc_application.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "sim/chance.h"
#include "sim/content.h"
#include "sim/host.h"

namespace warpline::sim {
namespace {

// Kinds of wakes, in the low four bits.
constexpr std::uint64_t kSend = 0;
constexpr std::uint64_t kCancel = 1;
constexpr std::uint64_t kAnswer = 2;
constexpr std::uint64_t kReconnect = 3;
constexpr std::uint64_t kGiveBack = 4;

constexpr std::int64_t kRetry = 20'000;
constexpr std::int64_t kLongestWait = 300'000;
/// Of who asks before it answers: two that hold what the other has sent, and ask in turn, would wait for each other's
/// room for ever.
constexpr std::int64_t kNestedPatience = 1'000'000'000;
constexpr std::int64_t kLongestDeadline = 2'000'000;
constexpr std::int64_t kLongestReconnect = 3'000'000;

}  // namespace

RpcApplication::Lent::Lent(std::uint32_t bytes)
    : data(bytes > 0 ? std::make_unique_for_overwrite<std::uint8_t[]>(bytes) : nullptr), length(bytes) {}

RpcApplication::Lent::~Lent() {
  if (data != nullptr) std::memset(data.get(), 0xee, length);
}

void RpcApplication::start(Host& host) {
  host_ = &host;
  streams_.start(host);
  for (const std::uint32_t peer : plan_.peers) connect(peer);
  wake_in(0, kSend, 0);
}

void RpcApplication::crash() {
  ledger_.crashed(host_->index());
  streams_.crash();
  sessions_.clear();
  open_.clear();
  answers_.clear();
  kept_.clear();
  sending_later_ = false;
}

void RpcApplication::wake_in(std::int64_t nanos, std::uint64_t kind, std::uint64_t number) {
  host_->wake_at(host_->now() + nanos, kind | number << 4);
}

void RpcApplication::connect(std::uint32_t peer) {
  const bool ordered = chance(random_, plan_.ordered);
  const message::Opened opened =
      host_->endpoint().connect(address_of_host(peer), {.context = peer, .ordered = ordered}, host_->clock());
  if (opened.status == message::CallStatus::ok) {
    sessions_.push_back({.id = opened.session, .peer = peer, .own = true, .ordered = ordered});
  } else {
    ledger_.fail(fmt::format("host {} cannot connect to {}: {}", host_->index(), peer, message::name(opened.status)));
  }
}

RpcApplication::Session* RpcApplication::find(message::SessionId id) {
  const auto found = std::find_if(sessions_.begin(), sessions_.end(), [&](const Session& s) { return s.id == id; });
  return found == sessions_.end() ? nullptr : &*found;
}

void RpcApplication::wake(std::uint64_t what) {
  const auto number = static_cast<std::uint32_t>(what >> 4);
  switch (what & 15) {
    case kSend:
      sending_later_ = false;
      return send_some();
    case kCancel: {
      const auto open = open_.find(static_cast<std::uint16_t>(number));
      if (open == open_.end()) return;
      const message::CallStatus status = host_->endpoint().cancel(open->second.id, host_->clock());
      if (status != message::CallStatus::ok && status != message::CallStatus::unknown_message) {
        ledger_.fail(fmt::format("host {} cannot cancel {}: {}", host_->index(), number, message::name(status)));
      }
      return;
    }
    case kAnswer:
      return answer(number);
    case kReconnect:
      return reconnect(number);
    default:
      return give_back(number);
  }
}

void RpcApplication::send_some() {
  while (left_ > 0 && open_.size() < plan_.at_once && !sessions_.empty()) {
    const auto session = static_cast<std::uint32_t>(random_.below(sessions_.size()));
    if (!sessions_[session].alive || !send_one(session, 0)) {
      if (!std::exchange(sending_later_, true)) wake_in(kRetry, kSend, 0);
      return;
    }
    --left_;
    if (plan_.pause > 0) {
      if (!std::exchange(sending_later_, true)) wake_in(between(random_, 0, plan_.pause), kSend, 0);
      return;
    }
  }
}

Sent RpcApplication::draw(std::uint32_t session, bool nested) {
  // As many short as long ones.
  const auto any_length = [&](std::uint32_t longest) {
    const std::uint64_t below = std::uint64_t{1} << between(random_, 0, 24);
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(random_.below(below), longest));
  };
  Sent message{.from = host_->index(), .to = sessions_[session].peer};
  message.length = any_length(plan_.longest);
  message.one_way = !nested && chance(random_, plan_.one_way);
  const auto any_metadata = [&] {
    if (!chance(more_, plan_.metadata)) return 0U;
    return static_cast<std::uint32_t>(between(more_, 1, chance(more_, 0.5) ? 40 : message::kMaxMetadataBytes));
  };
  message.metadata = any_metadata();
  message.too_long = chance(random_, plan_.far_too_long);
  if (message.too_long) message.length = plan_.longest_taken + 1 + any_length(1000);
  if (message.one_way) {
    message.more = chance(random_, 0.3);
    return message;
  }
  message.answer_length = any_length(plan_.longest);
  message.answer_metadata = any_metadata();
  if (!nested && chance(random_, plan_.nested)) {
    message.answer = AnswerKind::nested;
  } else if (chance(random_, plan_.later)) {
    message.answer = AnswerKind::later;
  } else if (chance(random_, plan_.echo)) {
    message.answer = AnswerKind::echo;
    message.answer_length = message.length;
  } else if (chance(random_, plan_.declined)) {
    message.answer = AnswerKind::declined;
  }
  message.answer_room = message.answer_length;
  if (message.answer_length > 0 && chance(random_, plan_.no_room)) {
    message.answer_room = static_cast<std::uint32_t>(random_.below(message.answer_length));
  }
  message.may_expire = chance(random_, plan_.deadline);
  message.answer_in_endpoint = chance(more_, plan_.in_endpoint);
  if (message.answer_in_endpoint) message.answer_room = plan_.longest_taken;
  return message;
}

message::Priority RpcApplication::any_priority() {
  return chance(priorities_, plan_.high) ? message::Priority::high : message::Priority::normal;
}

bool RpcApplication::send_one(std::uint32_t session, std::uint32_t parent) {
  message::Endpoint& endpoint = host_->endpoint();
  const std::uint16_t code = ledger_.next_code(host_->index());
  if (code == Ledger::kMostOfAHost - 1) return true;
  Sent message = draw(session, parent != 0);
  message.own_session = sessions_[session].own;
  message.may_be_cancelled = chance(random_, plan_.cancel);
  const bool copied = chance(random_, plan_.copied);
  Lent bytes(message.length);
  fill_content(bytes.data.get(), message.length, Ledger::content(message.from, code, false));
  std::array<std::uint8_t, message::kMaxMetadataBytes> told;
  fill_content(told.data(), message.metadata, Ledger::metadata(message.from, code, false));
  const std::span<const std::uint8_t> metadata(told.data(), message.metadata);
  Lent room(message.answer_in_endpoint ? 0 : message.answer_room);
  const message::ConstBuffer from{bytes.data.get(), message.length};
  message::Submitted submitted;
  if (message.one_way) {
    submitted = endpoint.send(sessions_[session].id, from,
                              {.context = code,
                               .code = code,
                               .more = message.more,
                               .copy = copied,
                               .priority = any_priority(),
                               .metadata = metadata},
                              host_->clock());
  } else {
    message::RequestOptions options{.context = code, .code = code, .copy = copied, .priority = any_priority()};
    if (message.may_expire) options.deadline = Nanos{host_->clock().value + between(random_, 1'000, kLongestDeadline)};
    options.response_in_endpoint = message.answer_in_endpoint;
    options.metadata = metadata;
    submitted = endpoint.request(sessions_[session].id, from, {room.data.get(), room.length}, options, host_->clock());
  }
  if (submitted.status != message::CallStatus::ok) {
    if (submitted.status != message::CallStatus::no_slot && submitted.status != message::CallStatus::no_memory &&
        submitted.status != message::CallStatus::unknown_session &&
        submitted.status != message::CallStatus::going_away) {
      ledger_.fail(
          fmt::format("host {} cannot send {} B: {}", host_->index(), message.length, message::name(submitted.status)));
    }
    return false;
  }
  host_->trace()(host_->now(), "host {} begins {} {} to {}: {} B, answer {} B", message.from,
                 message.one_way ? "message" : "request", code, message.to, message.length, message.answer_length);
  if (copied || message.length <= message::kInlineBytes) bytes = Lent();
  ledger_.add(message);
  ++sessions_[session].open;
  open_.emplace(code, Open{submitted.id, session, std::move(bytes), std::move(room), parent});
  if (message.may_be_cancelled) wake_in(between(random_, 0, kLongestWait), kCancel, code);
  return true;
}

void RpcApplication::handle(const message::MessageEvent& event) {
  host_->trace()(host_->now(), "host {} event {} status {} code {} context {} {} B reason {}", host_->index(),
                 static_cast<int>(event.kind), message::name(event.status), event.code, event.context, event.length,
                 message::name(event.reason));
  if (streams_.handle(event)) return;
  switch (event.kind) {
    case message::EventKind::connected:
      if (Session* session = find(event.session)) session->alive = true;
      break;
    case message::EventKind::accepted: {
      const message::PeerAddress peer = host_->endpoint().facts(event.session).peer;
      sessions_.push_back({.id = event.session, .peer = host_of_address(peer)});
      break;
    }
    case message::EventKind::lost:
      return lost(event);
    case message::EventKind::request:
    case message::EventKind::stream_request:
      return got_request(event);
    case message::EventKind::message:
    case message::EventKind::stream_piece:
      return got_message(event);
    case message::EventKind::withdrawn:
      break;  // the answer that comes is told so
    case message::EventKind::response:
      return ended(event);
    case message::EventKind::sent:
      if (!event.id.incoming) return ended(event);
      if (answers_.erase(static_cast<std::uint32_t>(event.context)) == 0) {
        ledger_.fail(fmt::format("host {}: `sent` for an answer that is not under way", host_->index()));
      }
      break;
  }
  send_some();
}

/// Codes of one sender grow; on an ordered session they arrive so.
void RpcApplication::check_order(const message::MessageEvent& event) {
  Session* session = find(event.session);
  if (session == nullptr) {
    return ledger_.fail(fmt::format("host {}: a message of a session that was never accepted", host_->index()));
  }
  if (session->own && session->ordered && session->handled >= event.code) {
    ledger_.fail(
        fmt::format("host {}: message {} of {} after {}", host_->index(), event.code, session->peer, session->handled));
  }
  session->handled = event.code;
}

bool RpcApplication::work() {
  const std::uint64_t any = sessions_.empty() ? 0 : host_->now() / 1000 % sessions_.size();
  if (!sessions_.empty() && sessions_[any].alive)
    streams_.open_some(sessions_[any].id, sessions_[any].peer, sessions_[any].own);
  return streams_.work();
}

void RpcApplication::got_request(const message::MessageEvent& event) {
  check_order(event);
  const std::uint32_t from = host_of_address(host_->endpoint().facts(event.session).peer);
  Sent* message = ledger_.handled(host_->index(), from, event);
  if (message == nullptr) return;
  const std::uint32_t number = next_number_++;
  answers_.emplace(number, Answer{.request = event.id,
                                  .from = from,
                                  .code = event.code,
                                  .data = event.data,
                                  .length = event.length,
                                  .answer_length = message->answer_length,
                                  .answer_metadata = message->answer_metadata,
                                  .kind = message->answer,
                                  .given = false,
                                  .bytes = Lent()});
  if (message->answer == AnswerKind::later) return wake_in(between(random_, 0, kLongestWait), kAnswer, number);
  if (message->answer == AnswerKind::nested && !sessions_.empty()) {
    const auto session = static_cast<std::uint32_t>(random_.below(sessions_.size()));
    if (sessions_[session].alive && send_one(session, number)) return wake_in(kNestedPatience, kAnswer, number);
  }
  answer(number);
}

void RpcApplication::answer(std::uint32_t number) {
  const auto found = answers_.find(number);
  if (found == answers_.end() || found->second.given) return;  // withdrawn since
  Answer& answer = found->second;
  if (!has_content(answer.data, answer.length, Ledger::content(answer.from, answer.code, false))) {
    ledger_.fail(fmt::format("host {}: request {} of {} changed before it was answered", host_->index(), answer.code,
                             answer.from));
  }
  const bool copied = chance(random_, plan_.copied);
  const std::uint8_t* data = answer.data;
  if (answer.kind == AnswerKind::declined) {
    const message::CallStatus status = host_->endpoint().release(answer.request, host_->clock());
    if (status != message::CallStatus::ok) cannot("decline", answer.code, answer.from, status);
    answers_.erase(found);
    return;
  }
  if (answer.kind != AnswerKind::echo) {
    answer.bytes = Lent(answer.answer_length);
    data = answer.bytes.data.get();
    fill_content(answer.bytes.data.get(), answer.answer_length, Ledger::content(answer.from, answer.code, true));
  }
  std::array<std::uint8_t, message::kMaxMetadataBytes> told;
  fill_content(told.data(), answer.answer_metadata, Ledger::metadata(answer.from, answer.code, true));
  const message::CallStatus status = host_->endpoint().respond(answer.request, {data, answer.answer_length},
                                                               {.context = number,
                                                                .code = answer.code,
                                                                .copy = copied,
                                                                .priority = any_priority(),
                                                                .metadata = {told.data(), answer.answer_metadata}},
                                                               host_->clock());
  if (status == message::CallStatus::no_memory || status == message::CallStatus::no_slot)
    return wake_in(kRetry, kAnswer, number);
  if (status == message::CallStatus::unknown_message || status == message::CallStatus::unknown_session) {
    answers_.erase(found);  // its `withdrawn` is on the way
    return;
  }
  if (status != message::CallStatus::ok) {
    ledger_.fail(fmt::format("host {} cannot answer {} of {}: {}", host_->index(), answer.code, answer.from,
                             message::name(status)));
  }
  answer.given = true;
  if (copied || answer.answer_length <= message::kInlineBytes) answers_.erase(found);
}

void RpcApplication::cannot(std::string_view what, std::uint16_t code, std::uint32_t of, message::CallStatus status) {
  ledger_.fail(fmt::format("host {} cannot {} {} of {}: {}", host_->index(), what, code, of, message::name(status)));
}

void RpcApplication::got_message(const message::MessageEvent& event) {
  check_order(event);
  const std::uint32_t from = host_of_address(host_->endpoint().facts(event.session).peer);
  if (ledger_.handled(host_->index(), from, event) == nullptr) return;
  keep({event.id, from, event.code, event.data, event.length});
}

void RpcApplication::keep(const Kept& kept) {
  const std::uint32_t number = next_number_++;
  kept_.emplace(number, kept);
  Random& random = kept.answer ? more_ : random_;
  if (chance(random, plan_.late_release)) return wake_in(between(random, 0, kLongestWait), kGiveBack, number);
  give_back(number);
}

void RpcApplication::give_back(std::uint32_t number) {
  const auto found = kept_.find(number);
  const Kept& kept = found->second;
  if (!has_content(kept.data, kept.length, Ledger::content(kept.from, kept.code, kept.answer))) {
    ledger_.fail(fmt::format("host {}: message {} of {} changed before it was given back", host_->index(), kept.code,
                             kept.from));
  }
  const message::CallStatus status = host_->endpoint().release(kept.id, host_->clock());
  if (status != message::CallStatus::ok) cannot("give back", kept.code, kept.from, status);
  kept_.erase(found);
}

void RpcApplication::ended(const message::MessageEvent& event) {
  const auto code = static_cast<std::uint16_t>(event.context);
  const auto found = open_.find(code);
  ledger_.completed(host_->index(), code, event);
  if (found == open_.end()) return;
  if (event.kind == message::EventKind::response && event.status == message::MessageStatus::ok) {
    const Sent& sent = *ledger_.find(host_->index(), code);
    const bool echo = sent.answer == AnswerKind::echo;
    if (sent.answer_in_endpoint) keep({event.id, host_->index(), code, event.data, event.length, !echo});
  }
  const std::uint32_t parent = found->second.parent;
  --sessions_[found->second.session].open;
  open_.erase(found);
  if (parent != 0) answer(parent);
  send_some();
}

void RpcApplication::lost(const message::MessageEvent& event) {
  Session* session = find(event.session);
  if (session == nullptr) {
    return ledger_.fail(fmt::format("host {}: a session lost that never was", host_->index()));
  }
  session->alive = false;
  session->handled = -1;
  if (session->open > 0) {
    ledger_.fail(fmt::format("host {}: a session lost before its {} messages", host_->index(), session->open));
  }
  if (session->own && !closing_) {
    wake_in(between(random_, 0, kLongestReconnect), kReconnect, static_cast<std::uint64_t>(session - sessions_.data()));
  }
}

void RpcApplication::reconnect(std::uint32_t index) {
  Session& session = sessions_[index];
  if (session.alive || closing_) return;
  const message::CallStatus status = host_->endpoint().reconnect(session.id, host_->clock());
  if (status != message::CallStatus::ok) {
    ledger_.fail(
        fmt::format("host {} cannot reconnect to {}: {}", host_->index(), session.peer, message::name(status)));
  }
}

void RpcApplication::close() {
  closing_ = true;
  if (!host_->up()) return;
  for (const Session& session : sessions_) {
    if (session.own) host_->endpoint().close(session.id, host_->clock());  // also one that is being opened
  }
  host_->schedule_loop(host_->now());
}

void RpcApplication::forget() {
  for (const Session& session : sessions_) {
    if (session.own) host_->endpoint().forget(session.id, host_->clock());
  }
  host_->schedule_loop(host_->now());  // its last events
}

std::size_t RpcApplication::living_sessions() const {
  return static_cast<std::size_t>(
      std::count_if(sessions_.begin(), sessions_.end(), [](const Session& s) { return s.alive; }));
}

std::string RpcApplication::state() const {
  return fmt::format("host {}: {} to send, {} under way, {} to answer, {} to give back, {} of {} sessions alive",
                     host_->index(), left_, open_.size(), answers_.size(), kept_.size(), living_sessions(),
                     sessions_.size()) +
         (plan_.streams.calls == 0 ? "" : "; " + streams_.state());
}

}  // namespace warpline::sim
