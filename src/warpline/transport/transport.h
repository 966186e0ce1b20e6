// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "warpline/base/statistics/counter.h"
#include "warpline/base/units.h"
#include "warpline/message/datagram.h"
#include "warpline/message/endpoint.h"

namespace warpline::transport {

/// What became of datagrams on their way between an endpoint and the wire. One writer.
struct TransportCounters {
  Counter received;     ///< handed to the endpoint
  Counter sent;         ///< handed to the kernel or the device
  Counter gathered;     ///< payloads that a device reads where they lie
  Counter copied;       ///< payloads that it cannot, copied behind their heads
  Counter overflow;     ///< lost before they were fetched: the receive queue was full
  Counter truncated;    ///< longer than the room for them
  Counter refused;      ///< to be sent, and refused by the kernel or unreachable
  Counter unresolved;   ///< to be sent while the next hop's MAC address was being asked for
  Counter strangers;    ///< of other protocols, ports and addresses
  Counter malformed;    ///< lengths or checksums of the headers below ours are wrong
  Counter no_mbuf;      ///< no buffer was free
  Counter unreachable;  ///< times that the network said of a datagram sent that nothing has its port
  Counter icmp_other;   ///< other things that it said of such, which change nothing
  Counter icmp_muted;   ///< times that it said so much that it was not listened to for a while
  Counter answered;     ///< ARP, neighbour discovery and echo requests that were answered
};

/// Carries one endpoint's datagrams. One thread makes all calls; nothing is allocated, locked or thrown by them.
class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  /// What arrived, one burst at most. Valid until the next receive().
  virtual std::span<const message::Datagram> receive(Nanos now) = 0;
  /// What the network said of datagrams that were sent, as the last receive() found it. Valid until the next receive()
  /// or send().
  [[nodiscard]] std::span<const message::Unreachable> unreachable() const { return unreachable_; }
  /// Whether the last receive() may have left datagrams behind.
  [[nodiscard]] virtual bool more() const { return false; }
  /// The endpoint has read what receive() gave it.
  virtual void read() {}
  /// False while bytes that were received are on their way to where the CPU does not write: events must not be polled.
  [[nodiscard]] virtual bool settled() { return true; }
  /// It will never be settled again.
  [[nodiscard]] virtual bool failed() const { return false; }
  /// Where the next datagrams may be written, with room for their heads; empty while the device or the kernel takes
  /// no more.
  virtual std::span<message::Outgoing> room() = 0;
  /// Sends the first `count` of room(), in order.
  virtual void send(std::size_t count, Nanos now) = 0;
  /// Tokens of payloads that are not read any more; each once, valid until the next call. To be called after each
  /// send(): there is room for one burst's.
  virtual std::span<const std::uint64_t> completed() = 0;
  /// Sleeps until something arrives, `until` (of the clock that gives `now`) or a fraction of a second has passed; with
  /// wake_by() some seconds. A transport that only polls returns at once.
  virtual void wait(Nanos now, Nanos until) = 0;
  /// From now on wait() ends when this descriptor is readable, too; -1: no more.
  virtual void wake_by(int descriptor) { wake_ = descriptor; }

  /// What is readable when something has arrived, for loops that sleep by themselves; -1: a transport that only polls.
  [[nodiscard]] virtual int descriptor() const { return -1; }
  /// What was sent waits until descriptor() is writable.
  [[nodiscard]] virtual bool blocked() const { return false; }
  /// Returns how long a loop may sleep that has nothing else to do before `until`. While blocked(), datagrams that are
  /// due cannot be sent, so that the loop sleeps until descriptor() is writable, or for a millisecond for its timers.
  [[nodiscard]] Nanos rest_until(Nanos now, Nanos until) const {
    return blocked() ? std::max(until, Nanos{now.value + kBlockedRest}) : until;
  }
  /// Something is under way whose end descriptor() does not tell of: poll, do not sleep.
  [[nodiscard]] virtual bool restless() { return false; }

  [[nodiscard]] const TransportCounters& counters() const { return counters_; }  ///< any thread may read them

  /// Whether timers may fire: nothing is left to be read, or there was too much of it for too long. Once after each
  /// receive().
  [[nodiscard]] bool drained() {
    full_bursts_ = more() ? full_bursts_ + 1 : 0;
    return full_bursts_ % kMostFullBursts == 0;
  }

 protected:
  TransportCounters counters_;                         ///< written by the transport's thread
  int wake_ = -1;                                      ///< of wake_by()
  std::span<const message::Unreachable> unreachable_;  ///< of unreachable(); receive() sets it

 private:
  static constexpr std::int64_t kBlockedRest = 1'000'000;  ///< ns
  static constexpr std::uint32_t kMostFullBursts = 64;
  std::uint32_t full_bursts_ = 0;
};

/// Gives the endpoint its tokens and a burst of what arrived, and does what is due. While more has arrived nothing is
/// due, so that no timer fires over an acknowledgement that waits to be read; but for a flood, which ends that after
/// some bursts. Returns whether anything came. `now` is the time just before.
bool receive_into(message::Endpoint& endpoint, Transport& transport, Nanos now);

/// Sends what the endpoint has to send; returns how many datagrams. `clock` has `Nanos now()`, which is asked before
/// each burst: packets are timed from when they leave, not from when the loop's turn began.
template <typename Clock>
std::size_t transmit_from(message::Endpoint& endpoint, Transport& transport, const Clock& clock) {
  std::size_t total = 0;
  for (std::span<message::Outgoing> room = transport.room(); !room.empty(); room = transport.room()) {
    const Nanos now = clock.now();
    const std::size_t count = endpoint.transmit(room, now);
    if (count != 0) {
      transport.send(count, now);
      for (const std::uint64_t token : transport.completed()) endpoint.transmitted(token);
    }
    total += count;
    if (count < room.size()) break;
  }
  return total;
}

}  // namespace warpline::transport
