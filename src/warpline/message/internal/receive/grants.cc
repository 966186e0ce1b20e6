// SPDX-License-Identifier: Apache-2.0
// Against incast: of a long message its sender sends the first fragment, and the rest as its receiver grants it. What
// is granted and has not arrived, of all sessions together, is bounded; sessions take turns. After Homa (Montazeri et
// al., SIGCOMM 2018), without its priorities.
#include <algorithm>

#include "warpline/message/internal/state.h"

namespace warpline {
namespace {

constexpr std::uint32_t kMostFragments = 8;  ///< of one grant
constexpr Nanos kRetry{100'000};             ///< where there was no place for the packet

}  // namespace

/// Bytes of one grant: a quarter of all, so that several senders are under way, within 1 to kMostFragments fragments.
std::uint32_t EndpointState::grant_bytes(const Session& session) const {
  const std::uint32_t fragments = config.grants / 4 / session.fragment_bytes;
  return std::clamp(fragments, 1U, kMostFragments) * session.fragment_bytes;
}

bool EndpointState::may_grant() const {
  if (grants.wanting.first == kNone || now() < grants.not_before) return false;
  const std::uint64_t owed = grants.owed + grants.owed_before;
  return owed == 0 || owed + grant_bytes(sessions[grants.wanting.first]) <= config.grants;
}

std::uint64_t* EndpointState::owed_with(const Message& message) {
  if (message.grant_epoch == grants.epoch) return &grants.owed;
  return message.grant_epoch == static_cast<std::uint8_t>(grants.epoch - 1) ? &grants.owed_before : nullptr;
}

/// What the message owes, in the sums of all: newly seen to move.
void EndpointState::set_owed(Message& message, std::uint32_t bytes) {
  if (std::uint64_t* sum = owed_with(message)) *sum -= std::min<std::uint64_t>(*sum, message.owed);
  message.owed = bytes;
  message.grant_epoch = grants.epoch;
  grants.owed += bytes;
}

void EndpointState::want_grants(Session& session) {
  if (session.wants_grants) return;
  session.wants_grants = true;
  session.wanting_next = kNone;
  const std::uint32_t index = index_of(session);
  (grants.wanting.last == kNone ? grants.wanting.first : sessions[grants.wanting.last].wanting_next) = index;
  grants.wanting.last = index;
}

/// The first of a message or response has come.
void EndpointState::begin_grants(Session& session, Message& message) {
  message.owed = 0;
  message.granted = message.in_length;
  if (config.grants == 0 || message.in_length <= session.fragment_bytes) return;
  message.granted = session.fragment_bytes;
  want_grants(session);
}

void EndpointState::granted_arrived(Session& session, Message& message, std::uint32_t bytes) {
  set_owed(message, message.owed - std::min(message.owed, bytes));
  if (message.granted < message.in_length) want_grants(session);
}

/// Grants on their way were forgotten: as if they had not been given.
void EndpointState::grant_again(Session& session, Message& message) {
  const bool arrives = message.state == MessageState::arriving || message.state == MessageState::awaiting;
  if (!arrives || message.owed == 0) return;
  message.granted -= message.owed;
  set_owed(message, 0);
  want_grants(session);
}

/// The session's next message that waits for a grant, in turns. One that has made nothing of its last grant for long
/// does not count; it will when it moves.
std::uint32_t EndpointState::next_to_grant(Session& session) {
  constexpr std::uint32_t kTurns = 2 * kSlots;
  for (std::uint32_t i = 0; i < kTurns; ++i) {
    const std::uint32_t turn = (session.grant_turn + i) % kTurns;
    const bool response = turn >= kSlots;
    const SlotUse& use = response ? session.outgoing[turn - kSlots] : session.incoming[turn];
    if (use.message == kNone) continue;
    const Message& message = messages[use.message];
    const bool arrives = response ? message.state == MessageState::awaiting && message.in_begun
                                  : message.state == MessageState::arriving;
    const bool stuck = message.owed != 0 && owed_with(message) == nullptr;
    if (!arrives || stuck || message.granted >= message.in_length) continue;
    session.grant_turn = static_cast<std::uint8_t>((turn + 1) % kTurns);
    return use.message;
  }
  return kNone;
}

void EndpointState::send_grants(std::span<Outgoing> out, std::size_t& count) {
  while (may_grant() && has_room(out, count)) {
    Session& session = sessions[grants.wanting.first];
    grants.wanting.first = session.wanting_next;
    if (grants.wanting.first == kNone) grants.wanting.last = kNone;
    session.wants_grants = false;
    if (session.phase != SessionPhase::established) continue;
    const std::uint32_t index = next_to_grant(session);
    if (index == kNone) continue;
    want_grants(session);
    if (!reserve(session, Purpose::acknowledgement)) {
      session.starved = false;
      grants.not_before = Nanos{now().value + kRetry.value};
      break;
    }
    Message& message = messages[index];
    const std::uint32_t more = std::min(grant_bytes(session), message.in_length - message.granted);
    message.granted += more;
    set_owed(message, message.owed + more);
    prepare(out[count]);
    write_grant(session, index, out[count]);
    address(session, out[count]);
    ++count;
  }
  if (grants.wanting.first == kNone) {
    grants.tick_at = kNever;
  } else if (grants.tick_at == kNever) {
    grants.tick_at = Nanos{now().value + stuck_after(sessions[grants.wanting.first]).value};
  }
}

Nanos EndpointState::stuck_after(const Session& session) const {
  return std::max(config.min_rto, probe_timeout(session));
}

/// What has not moved since the last tick but one is not waited for any longer: its sender may be gone.
void EndpointState::tick_grants() {
  grants.owed_before = grants.owed;
  grants.owed = 0;
  ++grants.epoch;
  grants.tick_at = Nanos{now().value + stuck_after(sessions[grants.wanting.first]).value};
}

/// Sender.
void EndpointState::take_grant(Session& session, const MessageFragment& fragment) {
  const bool response = fragment.kind == FragmentKind::grant_response;
  const SlotUse& use = response ? session.incoming[fragment.slot] : session.outgoing[fragment.slot];
  if (use.message == kNone || use.sequence != fragment.sequence) return;
  Message& message = messages[use.message];
  if (message.state != MessageState::sending || fragment.total != message.out_length) return;
  if (fragment.offset <= message.granted) return;
  message.granted = fragment.offset;
  if (message.next_fragment < message.fragments && !message.deferred) enqueue(session, use.message);
}

}  // namespace warpline
