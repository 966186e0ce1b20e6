// SPDX-License-Identifier: Apache-2.0
#include "sim/ledger.h"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

#include "sim/content.h"
#include "warpline/base/random.h"

namespace warpline::sim {
namespace {

constexpr std::size_t kFailuresKept = 20;

}  // namespace

Sent* Ledger::find(std::uint32_t from, std::uint16_t code) {
  if (from < sent_.size() && code < sent_[from].size()) return &sent_[from][code];
  fail(fmt::format("message {} of host {} was never sent", code, from));
  return nullptr;
}

std::uint64_t Ledger::content(std::uint32_t from, std::uint16_t code, bool answer) {
  return mix64(std::uint64_t{from} << 32 | std::uint64_t{code} << 1 | static_cast<std::uint64_t>(answer));
}

Sent* Ledger::handled(std::uint32_t at, std::uint32_t from, const message::MessageEvent& event) {
  Sent* message = find(from, event.code);
  if (message == nullptr) return nullptr;
  const auto wrong = [&](std::string_view what) {
    fail(fmt::format("message {} of host {}, handled by host {}: {}", event.code, from, at, what));
  };
  if (++message->handled > 1) wrong(fmt::format("for the {}. time", message->handled));
  if (message->to != at) wrong(fmt::format("was for host {}", message->to));
  if (message->one_way != (event.kind == message::EventKind::message)) wrong("as what it is not");
  if (message->more != event.more) wrong("`more` differs");
  if (message->too_long) wrong("is longer than what this host takes");
  if (message->may_expire != (event.deadline() != message::kNever)) wrong("whether it has a deadline differs");
  if (event.metadata().size() != message->metadata ||
      !has_content(event.metadata().data(), message->metadata, metadata(from, event.code, false))) {
    wrong("its metadata differs");
  }
  if (message->length != event.length) {
    wrong(fmt::format("{} B instead of {}", event.length, message->length));
  } else if (!has_content(event.data, event.length, content(from, event.code, false))) {
    wrong("its bytes differ");
  }
  return message;
}

void Ledger::completed(std::uint32_t from, std::uint16_t code, const message::MessageEvent& event) {
  Sent* message = find(from, code);
  if (message == nullptr) return;
  const auto wrong = [&](std::string_view what) {
    fail(fmt::format("message {} of host {}, completed as {}: {}", code, from, message::name(event.status), what));
  };
  message->status = event.status;
  message->reach = event.reach;
  message->code = event.code;
  if (++message->completed > 1) wrong(fmt::format("for the {}. time", message->completed));
  if (message->crashed) wrong("its host has crashed since");
  if (event.reach == message::Reach::handled && message->handled == 0) wrong("as handled, which it was not");
  if (event.status != message::MessageStatus::ok || message->one_way) return;
  if (event.code != code) wrong(fmt::format("the answer has the code {}", event.code));
  const bool echo = message->answer == AnswerKind::echo;
  const std::uint32_t told = message->answer_in_endpoint ? message->answer_metadata : 0;
  if (event.metadata().size() != told || !has_content(event.metadata().data(), told, metadata(from, code, true))) {
    wrong("the answer's metadata differs");
  }
  if (message->answer == AnswerKind::declined) {
    wrong("it was declined");
  } else if (message->answer_room == 0) {
    return;  // only the status is wanted
  } else if (message->answer_length > message->answer_room) {
    wrong("the answer has no room");
  } else if (event.length != message->answer_length) {
    wrong(fmt::format("{} B of answer instead of {}", event.length, message->answer_length));
  } else if (!has_content(event.data, event.length, content(from, code, !echo))) {
    wrong("the answer's bytes differ");
  }
}

void Ledger::crashed(std::uint32_t host) {
  for (Sent& message : sent_[host]) {
    if (message.completed == 0) message.crashed = true;
  }
}

void Ledger::fail(std::string what) {
  ++failure_count_;
  if (failures_.size() < kFailuresKept) failures_.push_back(std::move(what));
}

void Ledger::finish(const Excuses& excuses) {
  for (const std::vector<Sent>& of_host : sent_) {
    for (std::size_t code = 0; code < of_host.size(); ++code) {
      finish(of_host[code], static_cast<std::uint16_t>(code), excuses);
    }
  }
}

void Ledger::finish(const Sent& message, std::uint16_t code, const Excuses& excuses) {
  const bool any_drained = excuses.any_drained(message.from, message.to);
  const bool may_lose = excuses.may_lose(message.from, message.to);
  const bool peers_lost = may_lose || any_drained;
  const auto wrong = [&](std::string_view what) {
    fail(fmt::format("message {} of host {} to {} ({} B{}, {}): {}", code, message.from, message.to, message.length,
                     message.one_way ? ", one-way" : "", message::name(message.status), what));
  };
  if (message.crashed) return;
  if (message.completed == 0) return wrong("never ended");
  // Only now: what is on its way when the sender is told may still arrive.
  if (message.reach <= message::Reach::not_handled && message.handled != 0) {
    wrong(fmt::format("was handled, told as {}", message::name(message.reach)));
  }
  switch (message.status) {
    case message::MessageStatus::ok:
      if (message.handled == 0 && !(message.one_way && peers_lost)) wrong("was never handled");
      break;
    case message::MessageStatus::refused:
      if (any_drained && message.code == static_cast<std::uint16_t>(message::RefusalCode::going_away)) break;
      if (!message.too_long && message.answer != AnswerKind::declined && !message.may_expire) wrong("without reason");
      break;
    case message::MessageStatus::too_long:
      if (message.one_way || message.answer_length <= message.answer_room) wrong("though the answer has room");
      break;
    case message::MessageStatus::deadline:
      if (!message.may_expire) wrong("without one");
      break;
    case message::MessageStatus::cancelled:
      if (!message.may_be_cancelled) wrong("by nobody");
      break;
    case message::MessageStatus::peer_lost:
      if (!peers_lost) wrong("though nothing happened to the peer");
      // Who drains in peace has answered what it took.
      if (!may_lose && excuses.in_time && message.own_session && !message.one_way && message.handled != 0)
        wrong("was taken by a host that drained");
      break;
  }
}

std::string Ledger::summary() const {
  std::array<std::uint64_t, 6> by_status{};
  std::uint64_t sent = 0;
  std::uint64_t handled = 0;
  std::uint64_t crashed = 0;
  for (const std::vector<Sent>& of_host : sent_) {
    for (const Sent& message : of_host) {
      ++sent;
      handled += message.handled;
      crashed += static_cast<std::uint64_t>(message.crashed);
      if (message.completed > 0) ++by_status[static_cast<std::size_t>(message.status)];
    }
  }
  std::string text = fmt::format("{} sent, {} handled", sent, handled);
  for (std::size_t i = 0; i < by_status.size(); ++i) {
    if (by_status[i] > 0)
      text += fmt::format(", {} {}", by_status[i], message::name(static_cast<message::MessageStatus>(i)));
  }
  if (crashed > 0) text += fmt::format(", {} gone with their host", crashed);
  return text;
}

}  // namespace warpline::sim
