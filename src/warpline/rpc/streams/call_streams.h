// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "warpline/base/mpsc_ring.h"
#include "warpline/base/result.h"
#include "warpline/base/units.h"
#include "warpline/message/endpoint.h"
#include "warpline/packet/headers/message_header.h"
#include "warpline/rpc/call_observer.h"
#include "warpline/rpc/in_loop.h"
#include "warpline/rpc/streams/call_stream.h"
#include "warpline/rpc/streams/call_stream_place.h"

namespace warpline::rpc {

/// Calls in pieces over an endpoint: a request, pieces as one-way messages in both directions, and the response, all of
/// which begin with a head that says to which stream they belong (docs/message_format.md, Streams). Pieces that
/// arrived stay in the endpoint's memory until they are read, and count there as their peer's.
///
/// After it was made nothing is allocated, nobody locks. Belongs to the endpoint's thread, which makes all calls but
/// those that say otherwise.
class CallStreams {
 public:
  /// Called with each stream that a peer opened, inside of handle(). Who lets it go declines the call.
  using Taker = std::function<void(CallStream stream)>;

  /// Usage error: the settings do not fit each other, or those of the endpoint.
  [[nodiscard]] static Result<std::unique_ptr<CallStreams>> make(const CallStreamSettings& settings,
                                                                 const message::EndpointConfig& endpoint,
                                                                 transport::WakeUp* wake);
  CallStreams(const CallStreams&) = delete;
  CallStreams& operator=(const CallStreams&) = delete;

  // Any thread.
  /// Opens a stream; `now` is of the endpoint's clock.
  OpenedStream open(const StreamCall& call, Nanos now);
  [[nodiscard]] const CallStreamCounters& counters() const { return counters_; }

  // The endpoint's.
  void take_by(Taker taker) { taker_ = std::move(taker); }
  /// Who is told of each, from now on; null: nobody. It outlives this.
  void observe(CallObserver* observer) { observer_ = observer; }
  /// False if the event is of no stream. To be given each event of the endpoint, but requests and what is known to
  /// belong to others.
  bool handle(message::Endpoint& endpoint, const message::MessageEvent& event, Nanos now);
  /// Does what was ordered and what is due, and tells what is new. `moved`: since the last time something arrived,
  /// ended or left. Returns whether there was anything to do.
  bool advance(message::Endpoint& endpoint, bool moved, Nanos now);
  /// When advance() has something to do next, if nothing happens.
  [[nodiscard]] Nanos next_deadline() const { return due_; }
  /// Takes no more, and ends all there are as cancelled. Who has one still closes it.
  void end_all(message::Endpoint& endpoint, Nanos now);
  /// Places that no call has.
  [[nodiscard]] std::uint32_t available() const;

 private:
  friend class CallStream;
  using Head = packet::MessageStreamHead;

  CallStreams(const CallStreamSettings& settings, const message::EndpointConfig& endpoint, transport::WakeUp* wake);
  /// The endpoint's thread is to look at it. Any thread.
  void note(CallStreamPlace& place);
  /// Whether this thread is in a callback of the host, whose loop does not go on while it sleeps.
  [[nodiscard]] bool in_callback() const { return wake_ != nullptr && InLoop::of(*wake_); }
  [[nodiscard]] CallStreamPlace* take_place();
  [[nodiscard]] std::uint32_t number_of(const CallStreamPlace& place) const;
  [[nodiscard]] CallStreamPlace* find(std::uint32_t number);
  void list(CallStreamPlace& place);
  void change(CallStreamPlace& place);
  void tell();

  // Each returns whether it waits for the endpoint.
  [[nodiscard]] bool work(message::Endpoint& endpoint, CallStreamPlace& place, Nanos now);
  [[nodiscard]] bool submit(message::Endpoint& endpoint, CallStreamPlace& place, Nanos now);
  [[nodiscard]] bool send(message::Endpoint& endpoint, CallStreamPlace& place, std::uint32_t orders, Nanos now);
  [[nodiscard]] bool send_pieces(message::Endpoint& endpoint, CallStreamPlace& place, Nanos now);
  [[nodiscard]] bool send_small(message::Endpoint& endpoint, CallStreamPlace& place, Head::Kind kind, Nanos now);
  [[nodiscard]] bool answer(message::Endpoint& endpoint, CallStreamPlace& place, Nanos now);

  [[nodiscard]] Head head_of(CallStreamPlace& place, Head::Kind kind, std::uint32_t number) const;
  void give_back(message::Endpoint& endpoint, CallStreamPlace& place, Nanos now);
  void stop(message::Endpoint& endpoint, CallStreamPlace& place, Nanos now);
  void tell_begin(CallStreamPlace& place, Nanos now);
  void tell_end(CallStreamPlace& place, Nanos now);
  void end(message::Endpoint& endpoint, CallStreamPlace& place, const CallResult& result, Nanos now);
  void end_broken(message::Endpoint& endpoint, CallStreamPlace& place, message::RefusalCode code, Nanos now);
  void recycle(message::Endpoint& endpoint, CallStreamPlace& place, Nanos now);
  void expire(message::Endpoint& endpoint, Nanos now);

  bool take_sent(message::Endpoint& endpoint, const message::MessageEvent& event, Nanos now);
  bool take_response(message::Endpoint& endpoint, const message::MessageEvent& event, Nanos now);
  bool take_withdrawn(message::Endpoint& endpoint, const message::MessageEvent& event, Nanos now);
  void take_request(message::Endpoint& endpoint, const message::MessageEvent& event, Nanos now);
  void take_message(message::Endpoint& endpoint, const message::MessageEvent& event, Nanos now);
  [[nodiscard]] bool take_piece(message::Endpoint& endpoint, CallStreamPlace& place, const Head& head,
                                const message::MessageEvent& event, Nanos now);
  void take_total(message::Endpoint& endpoint, CallStreamPlace& place, std::uint32_t total, Nanos now);
  void look_for_end(message::Endpoint& endpoint, CallStreamPlace& place, Nanos now);

  const std::uint32_t window_;
  const std::uint32_t streams_a_session_;
  transport::WakeUp* const wake_;
  std::vector<std::unique_ptr<CallStreamPlace>> places_;
  MpscRing<std::uint32_t> noted_;
  std::atomic<bool> closed_{false};
  CallStreamCounters counters_;

  Taker taker_;
  CallObserver* observer_ = nullptr;
  std::vector<std::uint32_t> active_;      ///< places to be worked at
  std::vector<std::uint32_t> changed_;     ///< places with something new
  bool fresh_ = false;                     ///< one became active
  Nanos due_ = message::kNever;            ///< no later than the first deadline that the endpoint does not watch
  std::vector<std::uint16_t> of_session_;  ///< streams, by session
  std::vector<std::uint8_t> under_way_;    ///< pieces on their way, by session
};

}  // namespace warpline::rpc
