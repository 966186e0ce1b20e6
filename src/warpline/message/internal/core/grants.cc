// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/core/grants.h"

#include <algorithm>

namespace warpline::message {
namespace {

constexpr std::uint32_t kMostFragments = 8;  ///< of one grant
constexpr Nanos kRetry{100'000};             ///< where there was no place for the packet

}  // namespace

/// Bytes of one grant: a quarter of all, so that several senders are under way, within 1 to kMostFragments fragments.
std::uint32_t Grants::bytes_of(const Session& session) const {
  const std::uint32_t fragments = endpoint_.config.grants / 4 / session.fragment_bytes;
  return std::clamp(fragments, 1U, kMostFragments) * session.fragment_bytes;
}

bool Grants::due() const {
  if (wanting_.empty() || endpoint_.now() < not_before_) return false;
  const std::uint64_t owed = owed_ + owed_before_;
  return owed == 0 || owed + bytes_of(wanting_.front()) <= endpoint_.config.grants;
}

/// Whether what the message owes was left out of the sums: it will count again when it moves.
bool Grants::stuck(const Message& message) const {
  return message.grant_epoch != epoch_ && message.grant_epoch != static_cast<std::uint8_t>(epoch_ - 1);
}

/// What the message owes, in the sums of all: newly seen to move.
void Grants::set_owed(Message& message, std::uint32_t bytes) {
  if (!stuck(message)) {
    std::uint64_t& sum = message.grant_epoch == epoch_ ? owed_ : owed_before_;
    sum -= std::min<std::uint64_t>(sum, message.owed);
  }
  message.owed = bytes;
  message.grant_epoch = epoch_;
  owed_ += bytes;
}

void Grants::begin(Session& session, Message& message) {
  message.owed = 0;
  message.granted = message.in_length;
  if (endpoint_.config.grants == 0 || message.in_length <= session.fragment_bytes) return;
  message.granted = session.fragment_bytes;
  want(session);
}

void Grants::arrived(Session& session, Message& message, std::uint32_t bytes) {
  set_owed(message, message.owed - std::min(message.owed, bytes));
  if (message.granted < message.in_length) want(session);
}

void Grants::again(Session& session, Message& message) {
  const bool arrives = message.state == MessageState::arriving || message.state == MessageState::awaiting;
  if (!arrives || message.owed == 0) return;
  message.granted -= message.owed;
  set_owed(message, 0);
  want(session);
}

std::uint32_t Grants::next_of(Session& session) const {
  if (session.phase != SessionPhase::established) return kNone;
  constexpr std::uint32_t kTurns = 2 * kSlots;
  for (std::uint32_t i = 0; i < kTurns; ++i) {
    const std::uint32_t turn = (session.grant_turn + i) % kTurns;
    const bool response = turn >= kSlots;
    const SlotUse& use = response ? session.outgoing[turn - kSlots] : session.incoming[turn];
    if (use.message == kNone) continue;
    const Message& message = messages_[use.message];
    const bool arrives = response ? message.state == MessageState::awaiting && message.in_begun
                                  : message.state == MessageState::arriving;
    if (!arrives || (message.owed != 0 && stuck(message)) || message.granted >= message.in_length) continue;
    session.grant_turn = static_cast<std::uint8_t>((turn + 1) % kTurns);
    return use.message;
  }
  return kNone;
}

void Grants::give(const Session& session, Message& message) {
  const std::uint32_t more = std::min(bytes_of(session), message.in_length - message.granted);
  message.granted += more;
  if (message.state == MessageState::arriving) {
    message.deadline = {endpoint_.attended().value + endpoint_.config.message_timeout.value};
  }
  set_owed(message, message.owed + more);
}

void Grants::pause() { not_before_ = endpoint_.in(kRetry); }

Nanos Grants::stuck_after(const Session& session) const {
  return std::max(endpoint_.config.min_rto, timers_.probe_timeout(session));
}

void Grants::watch() {
  if (wanting_.empty()) {
    tick_at_ = kNever;
  } else if (tick_at_ == kNever) {
    tick_at_ = endpoint_.in(stuck_after(wanting_.front()));
  }
}

/// What has not moved since the last tick but one is not waited for any longer: its sender may be gone.
void Grants::tick() {
  owed_before_ = owed_;
  owed_ = 0;
  ++epoch_;
  tick_at_ = endpoint_.in(stuck_after(wanting_.front()));
}

}  // namespace warpline::message
