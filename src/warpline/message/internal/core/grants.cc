// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/core/grants.h"

#include <algorithm>

namespace warpline::message {
namespace {

constexpr std::uint32_t kMostFragments = 8;  ///< of one grant
constexpr Nanos kRetry{100'000};             ///< where there was no place for the packet

}  // namespace

/// Fragments of one grant: a quarter of all, so that several senders are under way, within 1 to kMostFragments.
std::uint32_t Grants::fragments_of(const Session& session) const {
  return std::clamp(endpoint_.config.grants / 4 / session.most_bytes, 1U, kMostFragments);
}

bool Grants::due() const {
  if (wanting_.empty() || endpoint_.now() < not_before_) return false;
  const std::uint64_t owed = owed_ + owed_before_;
  const Session& next = wanting_.front();
  return owed == 0 || owed + fragments_of(next) * next.most_bytes <= endpoint_.config.grants;
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
  if (endpoint_.config.grants == 0 || message.fragment_bytes == 0) return;
  message.granted = message.fragment_bytes;
  want(session);
}

void Grants::begin_again(Session& session, Message& message, std::uint16_t fragment_bytes) {
  if (endpoint_.config.grants == 0) return;
  if (message.granted <= message.fragment_bytes) {  // nothing was granted yet
    message.granted = fragment_bytes;
    return want(session);
  }
  // The last fragment of which the sender may send the beginning is granted as a whole.
  const std::uint64_t fragments = (message.granted - 1) / fragment_bytes + 1;
  message.granted = static_cast<std::uint32_t>(std::min<std::uint64_t>(fragments * fragment_bytes, message.in_length));
  set_owed(message, message.granted - fragment_bytes);
}

void Grants::arrived(Session& session, Message& message, std::uint32_t bytes) {
  const std::uint32_t owed = std::min(message.owed, bytes);
  // The rest was granted before again(): that grant had arrived, and what it granted will not come once more.
  message.granted += std::min(bytes - owed, message.in_length - message.granted);
  set_owed(message, message.owed - owed);
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
  const std::uint32_t more =
      std::min(fragments_of(session) * message.fragment_bytes, message.in_length - message.granted);
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
