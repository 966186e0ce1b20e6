// SPDX-License-Identifier: Apache-2.0
#include "warpline/rpc/streams/call_streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "warpline/base/units.h"
#include "warpline/transport/wake_up.h"

namespace warpline::rpc {
namespace {

using message::CallStatus;
using message::Endpoint;
using message::MessageStatus;
using message::Reach;
using message::RefusalCode;

constexpr std::uint32_t kIndexBits = 12;
constexpr std::uint32_t kGenerations = (1U << (32 - kIndexBits)) - 1;
/// Pieces of one session on their way at once: half of its slots stay for requests.
constexpr std::uint8_t kMostUnderWay = 32;
constexpr std::size_t kNotesATurn = 256;    ///< then it is the network's turn
constexpr std::uint32_t kPiecesATurn = 16;  ///< then it is another stream's

bool again(CallStatus status) { return status == CallStatus::no_slot || status == CallStatus::no_memory; }

}  // namespace

Result<std::unique_ptr<CallStreams>> CallStreams::make(const CallStreamSettings& settings,
                                                       const message::EndpointConfig& endpoint,
                                                       transport::WakeUp* wake) {
  const auto wrong = [](std::string what, std::string change) {
    return usage_error("calls in pieces", std::move(what), std::move(change));
  };
  if (settings.streams == 0 || settings.streams > 1U << kIndexBits)
    return wrong(fmt::format("{} streams", settings.streams), "1 to 4096 there can be");
  if (settings.window < kLeastStreamWindow || settings.window % 8 != 0) {
    return wrong(fmt::format("a window of {} bytes", settings.window),
                 fmt::format("it is {} at least, and a multiple of 8", kLeastStreamWindow));
  }
  if (endpoint.receive_window / 2 < settings.window) {
    return wrong(fmt::format("windows of {} bytes in sessions that hold {}", settings.window, endpoint.receive_window),
                 "make EndpointConfig::receive_window twice as large, or more");
  }
  // Pieces that wait for one before them must leave it room.
  if (endpoint.max_messages <= settings.most_pieces() || endpoint.receive_bytes <= settings.most_bytes()) {
    return wrong(fmt::format("{} streams in {} bytes for {} messages", settings.streams, endpoint.receive_bytes,
                             endpoint.max_messages),
                 fmt::format("EndpointConfig::receive_bytes is above {}, max_messages above {}", settings.most_bytes(),
                             settings.most_pieces()));
  }
  if (endpoint.max_message_bytes < kMaxPieceBytes + Head::kLength)
    return wrong("max_message_bytes is less than a piece", "raise it to 16384 at least");
  return std::unique_ptr<CallStreams>(new CallStreams(settings, endpoint, wake));
}

CallStreams::CallStreams(const CallStreamSettings& settings, const message::EndpointConfig& endpoint,
                         transport::WakeUp* wake)
    : window_(settings.window),
      streams_a_session_(endpoint.receive_window / 2 / settings.window),
      wake_(wake),
      noted_(settings.streams),
      of_session_(endpoint.max_sessions),
      under_way_(endpoint.max_sessions) {
  for (std::uint32_t i = 0; i < settings.streams; ++i)
    places_.push_back(std::make_unique<CallStreamPlace>(i, settings.window));
  active_.reserve(settings.streams);
  changed_.reserve(settings.streams);
}

// What any thread does.

void CallStreams::note(CallStreamPlace& place) {
  if (!place.noted.exchange(true, std::memory_order_acq_rel)) (void)noted_.push(place.index);
  if (wake_ != nullptr) wake_->wake();
}

CallStreamPlace* CallStreams::take_place() {
  if (closed_.load(std::memory_order_relaxed)) return nullptr;
  for (const auto& place : places_) {
    bool expected = false;
    if (!place->taken.load(std::memory_order_relaxed) &&
        place->taken.compare_exchange_strong(expected, true, std::memory_order_acquire))
      return place.get();
  }
  return nullptr;
}

std::uint32_t CallStreams::available() const {
  return static_cast<std::uint32_t>(
      std::ranges::count_if(places_, [](const auto& place) { return !place->taken.load(std::memory_order_relaxed); }));
}

OpenedStream CallStreams::open(const StreamCall& call, Nanos now) {
  if (call.request.size() > kMaxPieceBytes || call.metadata.size() > message::kMaxMetadataBytes)
    return {CallStatus::too_long, {}};
  CallStreamPlace* const place = take_place();
  if (place == nullptr) return {CallStatus::no_memory, {}};
  place->served = false;
  place->session = call.session;
  place->code = call.code;
  place->metadata = call.metadata;
  place->listener = call.news;
  place->deadline = time_sum(now, call.patience);
  place->request = {place->out.data(), Head::kLength + call.request.size()};
  std::ranges::copy(call.request, place->out.begin() + Head::kLength);
  // Until the endpoint has a copy nothing else goes there.
  place->write_end = place->out.size();
  place->orders.fetch_or(kStreamOpen, std::memory_order_release);
  note(*place);
  return {CallStatus::ok, CallStream(*this, *place)};
}

// What is to be done, and what is new.

std::uint32_t CallStreams::number_of(const CallStreamPlace& place) const {
  return place.generation << kIndexBits | place.index;
}

/// The place of a call that is under way.
CallStreamPlace* CallStreams::find(std::uint32_t number) {
  const std::uint32_t index = number & ((1U << kIndexBits) - 1);
  if (index >= places_.size()) return nullptr;
  CallStreamPlace& place = *places_[index];
  const bool alive = place.phase == StreamPhase::open || place.phase == StreamPhase::serving;
  return alive && place.generation == number >> kIndexBits ? &place : nullptr;
}

void CallStreams::list(CallStreamPlace& place) {
  fresh_ = true;
  if (std::exchange(place.listed, true)) return;
  active_.push_back(place.index);
}

void CallStreams::change(CallStreamPlace& place) {
  if (!std::exchange(place.changed, true)) changed_.push_back(place.index);
}

void CallStreams::tell() {
  for (const std::uint32_t index : changed_) {
    CallStreamPlace& place = *places_[index];
    if (!std::exchange(place.changed, false)) continue;
    place.news.fetch_add(1, std::memory_order_release);
    place.news.notify_all();
    const bool told =
        place.listener.told != nullptr && (place.orders.load(std::memory_order_acquire) & kStreamClose) == 0;
    if (told) place.listener.told(place.listener.context);
  }
  changed_.clear();
}

bool CallStreams::advance(Endpoint& endpoint, bool moved, Nanos now) {
  std::size_t done = 0;
  for (std::uint32_t index = 0; done < kNotesATurn && noted_.pop(index); ++done) {
    (void)places_[index]->noted.exchange(false, std::memory_order_acq_rel);
    list(*places_[index]);
  }
  const bool due = due_ <= now;
  if (due) expire(endpoint, now);
  const bool works = std::exchange(fresh_, false) || (moved && !active_.empty());
  if (works && !active_.empty()) {
    std::rotate(active_.begin(), active_.begin() + 1, active_.end());  // each is first in its turn
    std::erase_if(active_, [&](std::uint32_t index) {
      CallStreamPlace& place = *places_[index];
      place.listed = work(endpoint, place, now);
      return !place.listed;
    });
  }
  tell();
  return done != 0 || due || works;
}

bool CallStreams::work(Endpoint& endpoint, CallStreamPlace& place, Nanos now) {
  const std::uint32_t orders = place.orders.load(std::memory_order_acquire);
  const bool leaves = (orders & kStreamCancel) != 0 || ((orders & kStreamClose) != 0 && (orders & kStreamFinish) == 0);
  if (place.phase == StreamPhase::none) {
    if ((orders & kStreamOpen) == 0) return false;
    place.phase = StreamPhase::opening;
    tell_begin(place, now);
  }
  give_back(endpoint, place, now);
  bool waits = false;
  if (place.phase != StreamPhase::ended && leaves) {
    stop(endpoint, place, now);
  } else if (place.phase == StreamPhase::opening) {
    waits = submit(endpoint, place, now);
  } else if (place.phase == StreamPhase::open && !place.awaited) {
    // The answer came before all pieces, so that the end of the session ends no request of it any more.
    waits = endpoint.facts(place.session).established;
    if (!waits) end(endpoint, place, {.status = MessageStatus::peer_lost, .reach = Reach::handled}, now);
  } else if (place.phase != StreamPhase::ended) {
    waits = send(endpoint, place, orders, now);
  }
  const bool unheard = place.first_flight != place.next_flight || place.smalls != 0 || place.awaited;
  if (place.phase == StreamPhase::ended && (orders & kStreamClose) != 0 && !unheard) recycle(endpoint, place, now);
  return waits;
}

// What is sent.

CallStreams::Head CallStreams::head_of(CallStreamPlace& place, Head::Kind kind, std::uint32_t number) const {
  place.told_credit = place.released_cost + window_;
  return {kind, place.remote, number_of(place), number, place.told_credit};
}

bool CallStreams::submit(Endpoint& endpoint, CallStreamPlace& place, Nanos now) {
  due_ = std::min(due_, place.deadline);
  if (place.deadline <= now) {
    end(endpoint, place, {.status = MessageStatus::deadline}, now);
    return false;
  }
  // An index that makes no sense is the endpoint's to refuse.
  std::uint16_t* const count = place.session.index < of_session_.size() ? &of_session_[place.session.index] : nullptr;
  if (count != nullptr && *count >= streams_a_session_) return true;
  packet::emit(head_of(place, Head::Kind::open, 0), place.out.data());
  const message::Submitted submitted =
      endpoint.request(place.session, {place.request.data(), static_cast<std::uint32_t>(place.request.size())}, {},
                       {.context = stream_context(place, kStreamRequest),
                        .code = place.code,
                        .copy = true,
                        .deadline = place.deadline,
                        .response_in_endpoint = true,
                        .stream = true,
                        .metadata = place.metadata},
                       now);
  if (again(submitted.status)) return true;
  if (submitted.status != CallStatus::ok) {
    end(endpoint, place, {.status = MessageStatus::peer_lost}, now);
    return false;
  }
  counters_.opened.add(1);
  ++*count;
  place.message = submitted.id;
  place.awaited = true;
  place.phase = StreamPhase::open;
  place.out_end.store(place.out.size(), std::memory_order_release);
  change(place);
  return false;
}

bool CallStreams::send(Endpoint& endpoint, CallStreamPlace& place, std::uint32_t orders, Nanos now) {
  if (place.remote == 0) return false;  // the peer's first message has it, and credit
  bool waits = send_pieces(endpoint, place, now);
  const bool all = !place.has_next && !waits;
  if (all && place.served && (orders & kStreamFinish) != 0) return answer(endpoint, place, now);
  if (all && !place.served && (orders & kStreamEndWriting) != 0 && !place.end_sent)
    waits = send_small(endpoint, place, Head::Kind::end, now);
  // Unsigned: what was given is never taken back.
  if (!place.total_known && place.released_cost + window_ - place.told_credit >= window_ / 4)
    waits = send_small(endpoint, place, Head::Kind::credit, now) || waits;
  return waits;
}

bool CallStreams::send_pieces(Endpoint& endpoint, CallStreamPlace& place, Nanos now) {
  for (std::uint32_t sent = 0;; ++sent) {
    if (!place.has_next) place.has_next = place.written.pop(place.next);
    if (!place.has_next) return false;
    const std::uint32_t cost = place.next.length + kPieceCost;
    if (place.credit - place.sent_cost < cost) return false;
    if (sent == kPiecesATurn) {
      fresh_ = true;
      return true;
    }
    std::uint8_t& under_way = under_way_[place.session.index];
    const auto flights = static_cast<std::uint32_t>(place.flights.size());
    if (under_way == kMostUnderWay || place.next_flight - place.first_flight == flights) return true;
    std::uint8_t* const bytes = place.out.data() + place.next.at;
    const std::uint32_t told = place.told_credit;
    packet::emit(head_of(place, Head::Kind::piece, place.sent), bytes);
    const std::uint32_t flight = place.next_flight % flights;
    const message::Submitted submitted = endpoint.send(place.session, {bytes, place.next.length},
                                                       {.context = stream_context(place, flight), .stream = true}, now);
    if (submitted.status != CallStatus::ok) {  // if there is no session the end of the request says so
      place.told_credit = told;
      return again(submitted.status);
    }
    place.flights[flight] = {submitted.id, place.next.end, false};
    ++place.next_flight;
    ++under_way;
    ++place.sent;
    place.sent_cost += cost;
    place.bytes_out += place.next.length - Head::kLength;
    place.has_next = false;
    counters_.pieces_out.add(1);
  }
}

bool CallStreams::send_small(Endpoint& endpoint, CallStreamPlace& place, Head::Kind kind, Nanos now) {
  const auto which = static_cast<std::uint32_t>(std::countr_one(place.smalls));
  if (which >= place.small.size()) return false;  // the end of one of them brings it back
  std::array<std::uint8_t, Head::kLength> bytes;
  const bool end = kind == Head::Kind::end;
  const std::uint32_t told = place.told_credit;
  packet::emit(head_of(place, kind, end ? place.sent : 0), bytes.data());
  const message::Submitted submitted =
      endpoint.send(place.session, {bytes.data(), Head::kLength},
                    {.context = stream_context(place, kStreamSmall | which), .stream = true}, now);
  if (submitted.status != CallStatus::ok) {
    place.told_credit = told;
    return again(submitted.status);
  }
  place.small[which] = submitted.id;
  place.smalls |= 1U << which;
  place.end_sent = place.end_sent || end;
  if (!end) counters_.credits_out.add(1);
  return false;
}

bool CallStreams::answer(Endpoint& endpoint, CallStreamPlace& place, Nanos now) {
  packet::emit(head_of(place, Head::Kind::answer, place.sent), place.answer.data());
  const CallStatus status = endpoint.respond(place.message, {place.answer.data(), place.answer_length},
                                             {.code = place.answer_code, .stream = true}, now);
  if (again(status)) return true;
  // Otherwise it was withdrawn meanwhile, and has been given back.
  const bool answered = status == CallStatus::ok;
  end(endpoint, place,
      {.status = answered ? MessageStatus::ok : MessageStatus::cancelled,
       .reach = Reach::handled,
       .code = answered ? place.answer_code : std::uint16_t{0}},
      now);
  return false;
}

// Ends.

/// The application has read pieces: their memory is the endpoint's again, and their cost the peer's.
void CallStreams::give_back(Endpoint& endpoint, CallStreamPlace& place, Nanos now) {
  for (const std::uint32_t given = place.given.load(std::memory_order_acquire); place.released != given;
       ++place.released) {
    CallStreamPlace::Held& held = place.held[place.released % place.held.size()];
    (void)endpoint.release(held.id, now);
    held.here = false;
    place.released_cost += held.length + Head::kLength + kPieceCost;
  }
}

/// The application wants no more of it.
void CallStreams::stop(Endpoint& endpoint, CallStreamPlace& place, Nanos now) {
  const bool said = place.phase == StreamPhase::open && place.awaited;
  if (said && endpoint.cancel(place.message, now) == CallStatus::ok) return;  // its end says how far it came
  if (said) return;                                                           // the end is there already
  if (place.served) (void)endpoint.release(place.message, now);
  end(endpoint, place,
      {.status = MessageStatus::cancelled,
       .reach = place.phase == StreamPhase::opening ? Reach::never_sent : Reach::handled},
      now);
}

void CallStreams::end(Endpoint& endpoint, CallStreamPlace& place, const CallResult& result, Nanos now) {
  if (place.phase != StreamPhase::opening) --of_session_[place.session.index];
  const bool answered = place.served && result.status == MessageStatus::ok;
  place.phase = StreamPhase::ended;
  place.result = result;
  tell_end(place, now);
  // Nobody wants what is on its way, unless the answer counts it.
  if (!answered) {
    for (const CallStreamPlace::Flight& flight : place.flights) {
      if (!flight.done) (void)endpoint.cancel(flight.id, now);
    }
  }
  // What came out of order is not read any more.
  for (std::uint32_t number = place.expected; number != place.beyond; ++number) {
    CallStreamPlace::Held& held = place.held[number % place.held.size()];
    if (std::exchange(held.here, false)) (void)endpoint.release(held.id, now);
  }
  place.known.fetch_or(kStreamAllRead | kStreamEnded, std::memory_order_release);
  change(place);
  list(place);
}

void CallStreams::tell_begin(CallStreamPlace& place, Nanos now) {
  if (observer_ == nullptr) return;
  place.observed = true;
  place.began = now;
  const std::size_t head = place.served ? 0 : Head::kLength;
  observer_->stream_began(
      {place.session, place.code, place.served, static_cast<std::uint32_t>(place.request.size() - head)});
}

void CallStreams::tell_end(CallStreamPlace& place, Nanos now) {
  if (!std::exchange(place.observed, false) || observer_ == nullptr) return;
  const std::size_t head = place.served ? 0 : Head::kLength;
  observer_->stream_ended(
      {place.session, place.code, place.served, static_cast<std::uint32_t>(place.request.size() - head)},
      {place.result.status,
       place.result.code,
       place.sent,
       place.bytes_out,
       place.expected,
       place.bytes_in,
       {std::max<std::int64_t>(now.value - place.began.value, 0)}});
}

void CallStreams::end_broken(Endpoint& endpoint, CallStreamPlace& place, RefusalCode code, Nanos now) {
  counters_.broken.add(1);
  if (place.served) {
    (void)endpoint.release(place.message, now);
  } else if (place.awaited) {
    (void)endpoint.cancel(place.message, now);
  }
  end(endpoint, place,
      {.status = MessageStatus::refused, .reach = Reach::handled, .code = static_cast<std::uint16_t>(code)}, now);
}

/// Nobody has it any more: the place is another call's.
void CallStreams::recycle(Endpoint& endpoint, CallStreamPlace& place, Nanos now) {
  for (; place.released != place.expected; ++place.released) {
    CallStreamPlace::Held& held = place.held[place.released % place.held.size()];
    (void)endpoint.release(held.id, now);
    held.here = false;
  }
  if (std::exchange(place.lent, false)) (void)endpoint.release(place.message, now);
  for (CallStreamPlace::Written left; place.written.pop(left);) {
  }
  for (CallStreamPlace::Read left; place.arrived.pop(left);) {
  }
  place.orders.store(0, std::memory_order_relaxed);
  place.known.store(0, std::memory_order_relaxed);
  place.out_end.store(0, std::memory_order_relaxed);
  place.given.store(0, std::memory_order_relaxed);
  place.write_end = 0;
  place.reading = place.changed = place.has_next = place.end_sent = place.total_known = false;
  place.given_cost = place.remote = place.sent = place.sent_cost = place.credit = 0;
  place.first_flight = place.next_flight = 0;
  place.expected = place.released = place.beyond = place.received_cost = place.released_cost = place.told_credit = 0;
  place.bytes_out = place.bytes_in = 0;
  place.message = {};
  place.result = {};
  place.phase = StreamPhase::none;
  place.request = {};
  place.metadata = {};
  place.listener = {};
  place.generation = place.generation % kGenerations + 1;
  place.taken.store(false, std::memory_order_release);
}

/// Calls end here that the endpoint does not know yet, or not any more, as one whose answer came before all of its
/// pieces.
void CallStreams::expire(Endpoint& endpoint, Nanos now) {
  due_ = message::kNever;
  for (const auto& place : places_) {
    const bool watched = place->phase == StreamPhase::opening || (place->phase == StreamPhase::open && !place->awaited);
    if (!watched) continue;
    if (place->deadline > now) {
      due_ = std::min(due_, place->deadline);
      continue;
    }
    const Reach reach = place->phase == StreamPhase::open ? Reach::handled : Reach::never_sent;
    end(endpoint, *place, {.status = MessageStatus::deadline, .reach = reach}, now);
  }
}

void CallStreams::end_all(Endpoint& endpoint, Nanos now) {
  closed_.store(true, std::memory_order_relaxed);
  for (const auto& place : places_) {
    const bool ordered = (place->orders.load(std::memory_order_acquire) & kStreamOpen) != 0;
    if (place->phase == StreamPhase::none && ordered) place->phase = StreamPhase::opening;
    if (place->phase == StreamPhase::none || place->phase == StreamPhase::ended) continue;
    if (place->served) (void)endpoint.release(place->message, now);
    if (place->awaited) (void)endpoint.cancel(place->message, now);
    end(endpoint, *place, {.status = MessageStatus::cancelled, .reach = Reach::maybe_handled}, now);
  }
  tell();
}

}  // namespace warpline::rpc
