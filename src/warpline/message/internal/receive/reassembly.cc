// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/receive/reassembly.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "warpline/base/prefetch.h"

namespace warpline::message {
namespace {

/// A refusal says how far the request came; one with a code that is not known here says nothing.
Reach reach_of(RefusalCode refusal) {
  switch (refusal) {
    case RefusalCode::message_too_long:
    case RefusalCode::stalled:
    case RefusalCode::expired:
    case RefusalCode::no_streams:
    case RefusalCode::going_away:
      return Reach::not_handled;
    case RefusalCode::declined:
      return Reach::handled;
    case RefusalCode::broken_stream:  // said by no peer
      break;
  }
  return Reach::maybe_handled;
}

/// This end drains, and takes only what belongs to messages that it took before: what an ordered session's peer sent
/// before them, and pieces of streams.
bool belongs_to_taken(const Session& session, const packet::MessageFragment& fragment) {
  return (fragment.has(packet::MessageFragment::kStream) && fragment.kind == packet::FragmentKind::message) ||
         (session.ordered && static_cast<std::int16_t>(session.last_order - fragment.order) >= 0);
}

}  // namespace

bool Reassembly::take_incoming(Session& session, const Datagram& datagram, std::uint32_t at,
                               const packet::MessageFragment& fragment, std::uint32_t length) {
  SlotUse& use = session.incoming[fragment.slot];
  const auto newer = static_cast<std::int32_t>(fragment.sequence - use.sequence);
  const TransferRole role =
      fragment.kind == packet::FragmentKind::request ? TransferRole::peer_request : TransferRole::peer_message;
  if (newer <= 0) {
    const bool refused = newer == 0 && use.message != kNone && core_.messages[use.message].refuse;
    if (refused && role == TransferRole::peer_message) {
      // Acknowledged, all of it would look delivered to a sender that the refusal has not reached.
      core_.context.drop(MessageDrop::bad_fragment);
      // Where a window that does not move holds the refusal itself back.
      if (session.go_back_n) tell_busy(session, fragment, core_.messages[use.message].code);
      return false;
    }
    if (newer < 0 || use.message == kNone || core_.messages[use.message].state != MessageState::arriving) {
      core_.context.counters.fragments_duplicate.add(1);
      return true;
    }
    Message& message = core_.messages[use.message];
    if (message.role != role || message.in_length != fragment.total || message.in_head != fragment.head) {
      core_.context.drop(MessageDrop::bad_fragment);
      return false;
    }
    if (!follow_cut(session, message, fragment)) return true;
    const Placed placed = place(message, session, datagram, at, fragment, length);
    if (placed == Placed::complete) whole(session, use.message);
    return placed != Placed::no;
  }

  const auto ahead = static_cast<std::uint16_t>(fragment.order - session.expected_order);
  const bool single = fragment.fragment_bytes == 0;
  const bool beyond = (session.ordered && ahead >= kOrderSpan) ||
                      (!single && fragment.offset / fragment.fragment_bytes >= FragmentWindow::kSpan);
  if (beyond) {
    core_.context.drop(MessageDrop::beyond_window);
    return false;
  }
  if (core_.context.draining && !belongs_to_taken(session, fragment)) [[unlikely]] {
    core_.context.counters.messages_turned_away.add(1);
    return turn_away(session, fragment, RefusalCode::going_away, MessageDrop::going_away);
  }
  const bool fits = fragment.total - fragment.head <= core_.context.config.max_message_bytes;
  if (!fits || !core_.messages.can_hold(fragment.total)) [[unlikely]]
    return turn_away(session, fragment, RefusalCode::message_too_long, MessageDrop::too_long);
  if (fragment.has(packet::MessageFragment::kStream) && !core_.context.config.streams) [[unlikely]]
    return turn_away(session, fragment, RefusalCode::no_streams, MessageDrop::no_streams);
  const std::uint64_t held = std::uint64_t{session.unread} + fragment.total;
  if (held > std::uint64_t{core_.context.config.receive_window} + 2ULL * core_.context.config.max_message_bytes) {
    core_.context.drop(MessageDrop::no_buffer);
    tell_busy(session, fragment);
    return false;
  }
  const bool waits = session.ordered && ahead != 0;  // for one that must find room then
  if (waits && !core_.messages.has_to_spare(fragment.total)) {
    core_.context.drop(MessageDrop::no_buffer);
    tell_busy(session, fragment);
    return false;
  }
  const bool shares = !single && core_.context.config.buffers.take == nullptr;
  const std::uint64_t block = ReceiveMemory::block_bytes(fragment.total);
  const std::uint64_t others = waits ? ReceiveMemory::block_bytes(core_.context.config.max_message_bytes) : 0;
  const PeerGroups::Share share =
      shares ? core_.groups.may_hold(session, block, others, core_.messages.free_bytes()) : PeerGroups::Share::allows;
  const bool borrows = share != PeerGroups::Share::allows;
  if (borrows && (waits || !session.ordered || !core_.groups.may_borrow(session))) {
    drop_over(share);
    tell_busy(session, fragment);
    return false;
  }
  const bool plenty = core_.groups.has_own_place(session) && !waits && core_.messages.has_plenty(fragment.total);
  if (!plenty && !may_take(session, fragment, waits)) {
    tell_busy(session, fragment);
    return false;
  }
  const std::uint32_t index = transfers_.create(session, role);
  if (index == kNone) {
    core_.context.drop(MessageDrop::no_message);
    tell_busy(session, fragment);
    return false;
  }
  Message& message = core_.messages[index];
  message.state = MessageState::arriving;
  message.in_length = fragment.total;
  message.in_head = fragment.head;
  message.in_code = fragment.code;
  message.fragment_bytes = fragment.fragment_bytes;
  message.flags = fragment.flags;
  message.order = fragment.order;
  if (!core_.messages.take_in(message, fragment.code)) {
    transfers_.free(index);
    core_.context.drop(MessageDrop::no_buffer);
    tell_busy(session, fragment);
    return false;
  }
  if (!single) message.begin_window();
  if (shares) {
    message.share = borrows ? MemoryShare::borrowed : MemoryShare::held;
    core_.groups.hold(session, block, borrows);
  }
  core_.grants.begin(session, message);
  const Placed placed = place(message, session, datagram, at, fragment, length);
  if (placed == Placed::no) {
    transfers_.free(index);
    return false;
  }
  supersede(session, fragment.slot);
  use.sequence = fragment.sequence;
  use.message = index;
  message.sequence = fragment.sequence;
  message.slot = fragment.slot;
  message.has_slot = true;
  if (placed == Placed::complete) whole(session, index);
  return true;
}

/// Whether the share of the session's address allows a message that begins to arrive a place and memory until it is
/// over. One that `waits` for another one leaves both for that.
bool Reassembly::may_take(const Session& session, const packet::MessageFragment& fragment, bool waits) {
  const EndpointConfig& config = core_.context.config;
  const PeerGroups::Share place = core_.groups.may_have_place(session, waits);
  if (place != PeerGroups::Share::allows) [[unlikely]] {
    drop_over_places(place);
    return false;
  }
  // Where a source has memory for messages, there is metadata alone here.
  const std::uint32_t bytes = config.buffers.take == nullptr ? fragment.total : fragment.head;
  if (bytes <= kInlineBytes) return true;
  const std::uint64_t later = waits ? ReceiveMemory::block_bytes(config.max_message_bytes) : 0;
  const PeerGroups::Share memory = core_.groups.may_have(session.address_group, ReceiveMemory::block_bytes(bytes),
                                                         later, core_.messages.free_bytes());
  if (memory != PeerGroups::Share::allows) drop_over(memory);
  return memory == PeerGroups::Share::allows;
}

/// The path of a message under way may have shrunk: its sender has then begun anew, in smaller fragments, and so does
/// this. False: the fragment is of before, and nobody wants it any more.
bool Reassembly::begin_smaller(Session& session, Message& message, const packet::MessageFragment& fragment) {
  const bool of_before =
      fragment.fragment_bytes == 0 || (message.fragment_bytes != 0 && fragment.fragment_bytes > message.fragment_bytes);
  if (of_before) {
    core_.context.counters.fragments_duplicate.add(1);
    return false;
  }
  core_.grants.begin_again(session, message, fragment.fragment_bytes);
  message.fragment_bytes = fragment.fragment_bytes;
  message.begin_window();
  return true;
}

/// A fragment of a message of several.
Reassembly::Placed Reassembly::place_part(Message& message, Session& session, const Datagram& datagram,
                                          std::uint32_t at, const packet::MessageFragment& fragment,
                                          std::uint32_t length) {
  const std::uint32_t number = fragment.offset / message.fragment_bytes;
  if (message.window.has(number)) {
    core_.context.counters.fragments_duplicate.add(1);
    return Placed::yes;
  }
  if (number - message.window.base() >= FragmentWindow::kSpan) {
    core_.context.drop(MessageDrop::beyond_window);
    return Placed::no;
  }
  if (!put(message, datagram, at, fragment.offset, length)) return Placed::no;
  if (!message.in_device && fragment.offset >= message.in_head) {
    prefetch_bytes<true>(message.in + (fragment.offset - message.in_head + length), std::min(length, kPrefetched));
  }
  message.window.add(number);
  if (message.state == MessageState::arriving) expect_more(session, message);
  if (number != 0 && Grants::counts(message)) core_.grants.arrived(session, message, length);
  const std::uint64_t contiguous = std::uint64_t{message.window.base()} * message.fragment_bytes;
  return contiguous >= message.in_length ? Placed::complete : Placed::yes;
}

/// Bytes of the message from `offset` on, to where each belongs.
bool Reassembly::put_with_head(Message& message, const Datagram& datagram, std::uint32_t at, std::uint32_t offset,
                               std::uint32_t length) {
  const std::uint32_t head = offset < message.in_head ? std::min(length, message.in_head - offset) : 0;
  if (head != 0 && !take_head(message, datagram, at, offset, head)) return false;
  if (head == length) return true;
  return copy_in(datagram, at + head, length - head, message.in + (offset + head - message.in_head), message.in_device);
}

bool Reassembly::take_head(Message& message, const Datagram& datagram, std::uint32_t at, std::uint32_t offset,
                           std::uint32_t length) {
  constexpr std::uint32_t kTimeLeft = packet::MessageFragment::kTimeLeft;
  if (offset == 0) {  // no fragment is shorter; of a datagram that lies elsewhere, so much lies here
    std::array<std::uint8_t, kTimeLeft> time;
    if (!copy_in(datagram, at, kTimeLeft, time.data(), false)) return false;
    const std::uint64_t left = packet::load_be64(time.data());
    const std::int64_t arrival = core_.context.arrival().value;
    const bool request = message.role == TransferRole::peer_request;
    if (request && left != 0 && left < static_cast<std::uint64_t>(kNever.value - arrival)) {
      core_.messages.head_of(message).expires = {arrival + static_cast<std::int64_t>(left)};
    }
    at += kTimeLeft;
    offset += kTimeLeft;
    length -= kTimeLeft;
  }
  const bool wanted = message.role != TransferRole::own_request || message.in_endpoint;
  return !wanted ||
         copy_in(datagram, at, length, core_.messages.head_of(message).in_metadata + (offset - kTimeLeft), false);
}

bool Reassembly::copy_in(const Datagram& datagram, std::uint32_t at, std::uint32_t length, std::uint8_t* to,
                         bool device) {
  const bool placed_by_transport = device || (datagram.rest_device && at + length > datagram.head_length);
  if (placed_by_transport && core_.context.config.placer.copy == nullptr) {
    core_.context.drop(MessageDrop::no_buffer);
    return false;
  }
  const auto copy = [&](const std::uint8_t* from, std::uint32_t n) {
    if (placed_by_transport) {
      core_.context.config.placer.copy(core_.context.config.placer.context, to, from, n);
    } else {
      std::memcpy(to, from, n);
    }
    to += n;
  };
  const std::uint32_t in_head = at >= datagram.head_length ? 0 : std::min(length, datagram.head_length - at);
  if (in_head != 0) copy(datagram.head + at, in_head);
  if (in_head != length) copy(datagram.rest + (at + in_head - datagram.head_length), length - in_head);
  return true;
}

void Reassembly::whole(Session& session, std::uint32_t index) {
  Message& message = core_.messages[index];
  core_.grants.settle(message);
  if (message.role == TransferRole::peer_message) {
    session.incoming[message.slot].message = kNone;
    message.has_slot = false;
  }
  if (session.ordered) {
    hold_back(session, index);
    return;
  }
  transfers_.deliver(session, index);
}

/// Into the list of those that wait for an earlier one, at most kOrderSpan.
void Reassembly::hold_back(Session& session, std::uint32_t index) {
  Message& message = core_.messages[index];
  const auto distance = [&](const Message& other) {
    return static_cast<std::uint16_t>(other.order - session.expected_order);
  };
  message.state = MessageState::held_back;
  if (message.order != session.expected_order) expect_more(session, message);
  std::uint32_t before = kNone;
  std::uint32_t after = session.held_back.first;
  while (after != kNone && distance(core_.messages[after]) < distance(message)) {
    before = after;
    after = core_.messages[after].send_next;
  }
  const bool taken = distance(message) >= kOrderSpan || (session.orders_void >> distance(message) & 1) != 0 ||
                     (after != kNone && core_.messages[after].order == message.order);
  if (taken) {
    core_.context.drop(MessageDrop::bad_fragment);
    transfers_.free(index);
    return;
  }
  message.send_next = after;
  (before == kNone ? session.held_back.first : core_.messages[before].send_next) = index;
  deliver_in_order(session);
}

void Reassembly::deliver_in_order(Session& session) {
  for (;;) {
    const std::uint32_t index = session.held_back.first;
    const bool here = index != kNone && core_.messages[index].order == session.expected_order;
    if (!here && (session.orders_void & 1) == 0) return;
    session.orders_void >>= 1;
    ++session.expected_order;
    if (!here) continue;
    const Message& message = core_.messages[index];
    session.held_back.first = message.send_next;
    if (message.state == MessageState::withdrawn) {
      transfers_.free(index);
    } else {
      // Not before: what waits for its turn must not take the room that the one whose turn it is needs to arrive.
      transfers_.deliver(session, index);
    }
  }
}

/// What has this place in the order will not come.
void Reassembly::skip_order(Session& session, std::uint16_t order) {
  const auto ahead = static_cast<std::uint16_t>(order - session.expected_order);
  if (!session.ordered || ahead >= kOrderSpan) return;
  session.orders_void |= std::uint64_t{1} << ahead;
  deliver_in_order(session);
}

/// The slot's next message is here: its sender is done with the one before.
void Reassembly::supersede(Session& session, std::uint32_t slot) {
  const std::uint32_t index = session.incoming[slot].message;
  if (index == kNone) return;
  Message& message = core_.messages[index];
  if (message.state == MessageState::sending) {
    session.incoming[slot].message = kNone;
    message.has_slot = false;
    transfers_.end_response(index, MessageStatus::ok);
    return;
  }
  const bool arriving = message.state == MessageState::arriving;
  const std::uint16_t order = message.order;
  transfers_.withdraw_incoming(index);
  if (arriving) skip_order(session, order);
}

void Reassembly::take_cancel(Session& session, const packet::MessageFragment& fragment) {
  SlotUse& use = session.incoming[fragment.slot];
  const auto newer = static_cast<std::int32_t>(fragment.sequence - use.sequence);
  if (newer < 0) return;
  if (newer > 0) {
    supersede(session, fragment.slot);
    use.sequence = fragment.sequence;
    skip_order(session, fragment.order);
    return;
  }
  if (use.message == kNone) return;
  const bool arriving = core_.messages[use.message].state == MessageState::arriving;
  transfers_.withdraw_incoming(use.message);
  if (arriving) skip_order(session, fragment.order);
}

/// For a message that is not whole, or waits for its turn.
void Reassembly::expect_more(Session& session, Message& message) {
  message.deadline = {core_.context.attended().value + core_.context.config.message_timeout.value};
  if (message.deadline >= session.stalled_at) return;
  session.stalled_at = message.deadline;
  core_.timers.arm_next(session);
}

bool Reassembly::expire(Session& session) {
  const EndpointConfig& config = core_.context.config;
  if (!may_send_more(session, config.receive_window)) session.kept_at = core_.context.attended();
  session.stalled_at = kNever;
  const auto given_up_at = [&](const Message& message) {
    return std::max(message.deadline, Nanos{session.kept_at.value + config.message_timeout.value});
  };
  bool next_arrives = false;
  for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
    const std::uint32_t index = session.incoming[slot].message;
    if (index == kNone || core_.messages[index].state != MessageState::arriving) continue;
    Message& message = core_.messages[index];
    if (message.granted < message.in_length && message.owed == 0) expect_more(session, message);  // it waits for us
    if (given_up_at(message) > core_.context.attended()) {
      session.stalled_at = std::min(session.stalled_at, given_up_at(message));
      next_arrives = next_arrives || message.order == session.expected_order;
      continue;
    }
    core_.context.counters.messages_stalled.add(1);
    packet::MessageFragment fragment;
    fragment.slot = static_cast<std::uint8_t>(slot);
    fragment.sequence = message.sequence;
    fragment.order = message.order;
    transfers_.withdraw_incoming(index);
    static_cast<void>(refuse(session, fragment, RefusalCode::stalled));  // there is room: one was freed just now
  }
  if (session.held_back.first == kNone) return true;
  Message& held = core_.messages[session.held_back.first];
  if (next_arrives) expect_more(session, held);
  session.stalled_at = std::min(session.stalled_at, given_up_at(held));
  return given_up_at(held) > core_.context.attended();
}

/// Not acknowledged, so if this is lost the fragment comes again, and so does this.
void Reassembly::tell_busy(Session& session, const packet::MessageFragment& fragment, std::uint16_t refusal) {
  core_.ready.add(session);
  // What waits for this one waits for us.
  const bool response = fragment.kind == packet::FragmentKind::response;
  const bool next = session.ordered && !response && fragment.order == session.expected_order;
  if (next && session.held_back.first != kNone) expect_more(session, core_.messages[session.held_back.first]);
  for (std::uint32_t i = 0; i < session.busy_count; ++i) {
    if (session.busy[i].slot == fragment.slot && session.busy[i].response == response) {
      session.busy[i] = {fragment.sequence, fragment.slot, response, refusal};
      return;
    }
  }
  if (session.busy_count == kBusyNotices) return;
  session.busy[session.busy_count++] = {fragment.sequence, fragment.slot, response, refusal};
}

/// Refuses a message that begins to arrive. The first packet of a one-way message is dropped as well: acknowledged,
/// what is no longer than that would look delivered to its sender.
bool Reassembly::turn_away(Session& session, const packet::MessageFragment& fragment, RefusalCode code,
                           MessageDrop reason) {
  const PeerGroups::Share place = core_.groups.may_have_place(session, false);
  if (place != PeerGroups::Share::allows) {
    drop_over_places(place);
    return false;
  }
  if (!refuse(session, fragment, code)) return false;
  if (fragment.kind == packet::FragmentKind::request) return true;
  core_.context.drop(reason);
  return false;
}

bool Reassembly::refuse(Session& session, const packet::MessageFragment& fragment, RefusalCode code) {
  const std::uint32_t index = transfers_.create(session, TransferRole::peer_request);
  if (index == kNone) {
    core_.context.drop(MessageDrop::no_message);
    return false;
  }
  supersede(session, fragment.slot);
  SlotUse& use = session.incoming[fragment.slot];
  use.sequence = fragment.sequence;
  use.message = index;
  Message& message = core_.messages[index];
  message.refuse = true;
  message.state = MessageState::sending;
  message.code = static_cast<std::uint16_t>(code);
  message.sequence = fragment.sequence;
  message.slot = fragment.slot;
  message.has_slot = true;
  message.fragments = 1;
  transfers_.enqueue(session, index);
  skip_order(session, fragment.order);
  return true;
}

bool Reassembly::take_response(Session& session, const Datagram& datagram, std::uint32_t at,
                               const packet::MessageFragment& fragment, std::uint32_t length) {
  const SlotUse& use = session.outgoing[fragment.slot];
  const std::uint32_t index = use.message;
  const bool waits =
      index != kNone && use.sequence == fragment.sequence && core_.messages[index].role == TransferRole::own_request &&
      (core_.messages[index].state == MessageState::sending || core_.messages[index].state == MessageState::awaiting);
  if (!waits) {
    core_.context.counters.fragments_duplicate.add(1);
    return true;
  }
  Message& message = core_.messages[index];
  const bool single = fragment.fragment_bytes == 0;
  if (!message.in_begun) {
    message.reach = Reach::handled;
    message.in_length = fragment.total;
    message.in_head = fragment.head;
    message.in_code = fragment.code;
    message.fragment_bytes = fragment.fragment_bytes;
    message.state = MessageState::awaiting;  // the peer has all of the request
    if (fragment.total - fragment.head > message.in_capacity) {
      const MessageStatus status = message.in_capacity == 0 ? MessageStatus::ok : MessageStatus::too_long;
      message.in = nullptr;
      if (single) {
        transfers_.end_own(session, index, status);
      } else {
        transfers_.withdraw_own(session, index, status);
      }
      return true;
    }
    if (message.in_endpoint && !give_place(session, message, fragment)) return false;
    message.in_begun = true;
    if (!single) message.begin_window();
    core_.grants.begin(session, message);
  } else if (message.in_length != fragment.total || message.in_head != fragment.head) {
    core_.context.drop(MessageDrop::bad_fragment);
    return false;
  } else if (!follow_cut(session, message, fragment)) {
    return true;
  }
  const Placed placed = place(message, session, datagram, at, fragment, length);
  if (placed == Placed::complete) transfers_.end_own(session, index, MessageStatus::ok);
  return placed != Placed::no;
}

void Reassembly::drop_over(PeerGroups::Share share) {
  EndpointCounters& counters = core_.context.counters;
  (share == PeerGroups::Share::address ? counters.over_bytes_per_address : counters.over_bytes_per_prefix).add(1);
  core_.context.drop(MessageDrop::over_share);
}

void Reassembly::drop_over_places(PeerGroups::Share share) {
  EndpointCounters& counters = core_.context.counters;
  (share == PeerGroups::Share::address ? counters.over_messages_per_address : counters.over_messages_per_prefix).add(1);
  core_.context.drop(MessageDrop::over_share);
}

/// Memory of the endpoint for a response that begins to arrive. False: there is none now.
bool Reassembly::give_place(Session& session, Message& message, const packet::MessageFragment& fragment) {
  const bool shares = fragment.fragment_bytes != 0 && core_.context.config.buffers.take == nullptr;
  const std::uint64_t block = ReceiveMemory::block_bytes(fragment.total);
  const PeerGroups::Share share =
      shares ? core_.groups.may_hold(session, block, 0, core_.messages.free_bytes()) : PeerGroups::Share::allows;
  if (share != PeerGroups::Share::allows) {
    drop_over(share);
  } else if (!core_.messages.take_in(message, fragment.code)) {
    core_.context.drop(MessageDrop::no_buffer);
  } else {
    if (shares) core_.groups.hold(session, block, false);
    message.share = shares ? MemoryShare::held : MemoryShare::none;
    return true;
  }
  tell_busy(session, fragment);
  return false;
}

void Reassembly::take_refusal(Session& session, const packet::MessageFragment& fragment) {
  const SlotUse& use = session.outgoing[fragment.slot];
  if (use.message == kNone || use.sequence != fragment.sequence) return;
  Message& message = core_.messages[use.message];
  if (message.state != MessageState::sending && message.state != MessageState::awaiting) return;
  message.in_code = fragment.code;
  if (!message.in_endpoint) message.in = nullptr;
  message.reach = reach_of(static_cast<RefusalCode>(fragment.code));
  transfers_.end_own(session, use.message, MessageStatus::refused);
}

}  // namespace warpline::message
