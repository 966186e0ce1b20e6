// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>

#include "warpline/base/address.h"
#include "warpline/base/frame.h"
#include "warpline/base/result.h"
#include "warpline/base/units.h"
#include "warpline/stream/payload_source.h"
#include "warpline/stream/send_events.h"
#include "warpline/stream/sender_counters.h"
#include "warpline/stream/sender_settings.h"
#include "warpline/stream/unfilled_frame.h"

namespace warpline::stream {

class SenderCore;

/// Opens TCP connections (RFC 9293, 7323) and sends bytes by them: what is lost is found by selective acknowledgements
/// and time (RFC 2018, 8985, 6298) and sent again, and how much is on its way is CUBIC's decision (RFC 9438) or fixed.
/// Does no I/O, knows no clock and keeps no bytes: it takes frames and times, returns frames and events, and reads
/// bytes from a PayloadSource when it sends them. Bytes that peers send are acknowledged and thrown away.
///
/// One thread makes all calls; times never go back.
class StreamSender {
 public:
  /// For set_user_timeout().
  static constexpr Nanos kNeverGivesUp{std::numeric_limits<std::int64_t>::max()};

  /// Takes all memory that it ever needs. `source` outlives it. Errors: usage, for settings that make no sense.
  [[nodiscard]] static Result<StreamSender> create(const SenderSettings& settings, const PayloadSource& source,
                                                   Nanos now);
  StreamSender(StreamSender&&) noexcept;  ///< the other one is only good to be destroyed or assigned to
  StreamSender& operator=(StreamSender&&) noexcept;
  ~StreamSender();

  /// Begins to open a connection to `peer`, an address of the family of our own, by way of the station `next_hop`.
  /// `port` is ours, or 0 for one that is free. Nothing if there is no place, or none of these ports is free.
  [[nodiscard]] std::optional<ConnectionId> connect(const SocketAddress& peer, const MacAddress& next_hop, Nanos now,
                                                    std::uint16_t port = 0);
  /// Adds the next `bytes` of the stream to what may be sent. False, and nothing added, if the connection has ended or
  /// close() was called.
  bool offer(ConnectionId connection, std::uint64_t bytes);
  /// Says that no bytes follow: a FIN is sent behind those that were offered.
  void close(ConnectionId connection);
  /// Gives a connection a `timeout` of its own, from now on, in place of SenderSettings::user_timeout (R2 of RFC 9293,
  /// 3.8.3); kNeverGivesUp: none. One that is opening has SenderSettings::connect_timeout until it is open. False, and
  /// nothing done, if it has ended, its name is void, or the timeout is not positive.
  bool set_user_timeout(ConnectionId connection, Nanos timeout, Nanos now);
  /// Has all connections send by way of the station `next_hop` from now on.
  void set_next_hop(const MacAddress& next_hop);
  /// Ends a connection by a reset; its name is void.
  void abort(ConnectionId connection, Nanos now);

  /// Takes a frame, which it does not keep. `checksums_are_right`: the device that received it has seen to that.
  void receive(FrameRef frame, bool checksums_are_right, Nanos now);
  /// Does what is due. To be called when next_deadline() has come.
  void advance(Nanos now);
  /// Returns when advance() has something to do; it may turn out to be later.
  [[nodiscard]] Nanos next_deadline() const;
  /// Writes the next frame to be sent into `out`, which has at least frame_bytes(). Returns its length; 0 if there is
  /// none now.
  [[nodiscard]] std::uint32_t next_frame(std::span<std::uint8_t> out, Nanos now);
  /// Does the same but for the payload of a segment, whose place stays as it is: the caller puts it there, and adds it
  /// to the TCP checksum, before the frame is sent. The source is not asked.
  [[nodiscard]] UnfilledFrame next_unfilled(std::span<std::uint8_t> out, Nanos now);
  /// Returns the bytes of the longest frame that next_frame() writes: the MTU and Ethernet's header.
  [[nodiscard]] std::uint32_t frame_bytes() const;

  /// Returns the next event; none if nothing happened. A connection has one at a time, which says how it stands.
  [[nodiscard]] std::optional<SendEvent> poll();
  /// Returns how a connection stands; none if its name is void.
  [[nodiscard]] std::optional<SendView> view(ConnectionId connection) const;

  [[nodiscard]] const SenderCounters& counters() const;  ///< any thread may read them
  /// Returns how many connections have a place now: those whose ends may not be used again among them (TIME-WAIT).
  [[nodiscard]] std::uint32_t connections() const;
  /// Returns how many of these wait for the peer's FIN or its last segments alone: nothing of ours is on its way.
  [[nodiscard]] std::uint32_t lingering() const;

 private:
  explicit StreamSender(std::unique_ptr<SenderCore> core);
  std::unique_ptr<SenderCore> core_;
};

}  // namespace warpline::stream
