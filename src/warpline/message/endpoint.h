// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>

#include "warpline/base/result.h"
#include "warpline/base/units.h"
#include "warpline/message/config.h"
#include "warpline/message/counters.h"
#include "warpline/message/datagram.h"
#include "warpline/message/types.h"

namespace warpline::message {

struct EndpointState;

/// What request() and send() of an Endpoint return.
struct Submitted {
  CallStatus status = CallStatus::ok;  ///< why nothing was submitted, or ok
  MessageId id;                        ///< meaningful if ok
};

/// What connect() of an Endpoint returns.
struct Opened {
  CallStatus status = CallStatus::ok;  ///< why no session was opened, or ok
  SessionId session;                   ///< meaningful if ok
};

/// Reliable messages and requests over datagrams, without I/O: bytes and times go in, packets and events come out.
/// docs/message_format.md has the wire format. One thread owns an endpoint and makes all calls; `now` is of any
/// clock that does not step back, one clock for all calls. After create() nothing is allocated.
///
/// The owner's loop: receive() what arrived, advance(), poll() and handle events, transmit() until it yields less than
/// asked; if it wants to sleep, until next_deadline() or a datagram.
class Endpoint {
 public:
  /// Fails with a usage error if the configuration makes no sense.
  [[nodiscard]] static Result<Endpoint> create(const EndpointConfig& config, Nanos now);
  Endpoint(Endpoint&&) noexcept;  ///< takes the other's state: that one is then to be destroyed or assigned to, no more
  Endpoint& operator=(Endpoint&&) noexcept;
  ~Endpoint();

  // Sessions. Messages may be sent at once; they leave when the handshake is done. Ends with `connected` or `lost`.
  /// Opens a session with `peer`. `no_memory`: the pool of sessions is used up.
  Opened connect(const PeerAddress& peer, const SessionOptions& options, Nanos now);
  /// Opens a session that was lost once more, to the same peer, under the same id. Its next event is as of connect().
  CallStatus reconnect(SessionId session, Nanos now);
  /// Tells the peer once, ends all messages with `peer_lost` and then the session with `lost`. The id stays valid, for
  /// reconnect(), if the session was opened here, until forget().
  CallStatus close(SessionId session, Nanos now);
  /// Gives up a session, lost or not: its messages end with `peer_lost`, but there is no event `lost`.
  CallStatus forget(SessionId session, Nanos now);

  /// Says from any thread what peers may have from now on; `stranger_packets` is as in EndpointConfig, and 0
  /// counts as 1. Sessions that are there stay.
  void limit_peers(const SessionQuotas& quotas, std::uint32_t stranger_packets);

  // The end.
  /// From now on takes no sessions, which hear `not_accepted`, and nothing new on those there are: requests and
  /// messages of peers are refused as `going_away`, never handled, and those that have begun to arrive go on. Peers are
  /// told: a session that one opened ends when its last answer is there. At `deadline` all that peers opened are
  /// closed. A second call sets another deadline. Sessions opened here stay, for the requests that answers take.
  void drain(Nanos deadline, Nanos now);
  /// Whether it was drained: no session that a peer opened is left, and all was said that is to be said of that.
  [[nodiscard]] bool drained() const;

  // Messages. Of each session 64 of either end's are under way at once; of own ones more wait, first come, first
  // served, as far as EndpointConfig::max_queued goes.
  /// Fetches into the cache what a request or message of this session will use: of thousands of sessions it is not
  /// there. Worth while some requests ahead.
  void prefetch(SessionId session) const;
  /// Asks the peer. Ends with the event `response`; until then `message` (unless copied) and `response` stay
  /// untouched by the application. `response` without data: only the status and code are wanted, or the endpoint has
  /// the memory, see RequestOptions; `not_allowed`: with data, and the endpoint has the memory.
  Submitted request(SessionId session, ConstBuffer message, MutableBuffer response, const RequestOptions& options,
                    Nanos now);
  /// One-way. Ends with the event `sent`.
  Submitted send(SessionId session, ConstBuffer message, const SendOptions& options, Nanos now);
  /// Answers a request of the peer, once. Ends with the event `sent` if `message` is longer than kInlineBytes and not
  /// copied, without an event otherwise. The response may be made of the request's data, which then lives until that
  /// event. `unknown_message`: the request was withdrawn, and is given back now.
  CallStatus respond(const MessageId& request, ConstBuffer message, const SendOptions& options, Nanos now);
  /// Ends an own request or one-way message now: its event has the status `cancelled`. The peer may have handled it.
  CallStatus cancel(const MessageId& id, Nanos now);
  /// Gives back the data of a one-way message of the peer, or of a response in the endpoint's memory; or a request,
  /// which is then refused as `declined`.
  CallStatus release(const MessageId& message, Nanos now);

  // Packets.
  /// Takes what arrived. Each datagram is counted, as taken or by why it was dropped.
  void receive(std::span<const Datagram> datagrams, Nanos now);
  /// Fills `out` from its front; returns how many. Less than asked: nothing more may leave now.
  std::size_t transmit(std::span<Outgoing> out, Nanos now);
  /// Takes what the network says of datagrams that were sent. It ends no session: one whose own packet it repeats,
  /// later than any that was acknowledged, asks its peer at once, and is lost, as `unreachable`, if nothing comes for
  /// an eighth of peer_timeout, or a second if that is less.
  void unreachable(std::span<const Unreachable> said, Nanos now);
  /// A payload handed out with this token is not read any more. Also for packets that were not sent after all.
  void transmitted(std::uint64_t token);

  // Time.
  /// Does what is due. Cheap if nothing is.
  void advance(Nanos now);
  /// When advance() or transmit() has something to do next: a time in the past if at once, kNever if never.
  [[nodiscard]] Nanos next_deadline() const;

  // Events.
  /// Fills `events` from the front; returns how many. At most `requests` of them are of kind `request` or
  /// `stream_request`: others wait, those of each address in their order and until the peer withdraws them, with their
  /// peers held back by the receive window. Addresses then take turns; no event of another kind waits behind requests.
  /// `requests` is how many places for requests the application has free: those that it has taken from one address,
  /// until it answers them or the event `sent`, are at most eight times as many.
  std::size_t poll(std::span<MessageEvent> events, std::size_t requests = std::numeric_limits<std::size_t>::max());

  // Facts.
  [[nodiscard]] const EndpointCounters& counters() const;  ///< live, as long as the endpoint; any thread may read them
  [[nodiscard]] EndpointFacts facts() const;               ///< as of this call; by the owner's thread
  /// All zero for an unknown session.
  [[nodiscard]] SessionFacts facts(SessionId session) const;

 private:
  Endpoint(std::unique_ptr<EndpointState> state, std::shared_ptr<void> protection);
  std::shared_ptr<void> protection_;  ///< PacketProtection::Claim; null without protection
  std::unique_ptr<EndpointState> state_;
};

}  // namespace warpline::message
