// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "warpline/base/spsc_ring.h"
#include "warpline/base/units.h"
#include "warpline/message/types.h"
#include "warpline/rpc/call.h"
#include "warpline/rpc/streams/call_stream.h"

namespace warpline::rpc {

/// What an application has ordered: bits of CallStreamPlace::orders.
inline constexpr std::uint32_t kStreamEndWriting = 1;
inline constexpr std::uint32_t kStreamFinish = 2;
inline constexpr std::uint32_t kStreamCancel = 4;
inline constexpr std::uint32_t kStreamClose = 8;
inline constexpr std::uint32_t kStreamOpen = 16;
/// What is known of its call: bits of CallStreamPlace::known.
inline constexpr std::uint32_t kStreamAllRead = 1;  ///< no piece will come behind those in `arrived`
inline constexpr std::uint32_t kStreamEnded = 2;    ///< and `result` is there

/// How far the call of a place is, as its endpoint's thread knows it.
enum class StreamPhase : std::uint8_t {
  none,     ///< there is none, or it was ordered and not yet seen
  opening,  ///< its request was not yet given to the endpoint
  open,     ///< under way, opened here
  serving,  ///< under way, opened by the peer
  ended,
};

/// Everything of one end of a call in pieces, made beforehand. Two threads have it, the application's and the
/// endpoint's, and only by what is marked as theirs both.
struct CallStreamPlace {
  /// Bytes in `out`: the head of the message and the piece.
  struct Written {
    std::uint64_t end = 0;  ///< of all that was ever written
    std::uint32_t at = 0;
    std::uint32_t length = 0;
  };
  struct Read {
    const std::uint8_t* data = nullptr;
    std::uint32_t length = 0;
  };
  /// A piece of the peer that the endpoint has memory for.
  struct Held {
    message::MessageId id;
    const std::uint8_t* data = nullptr;
    std::uint32_t length = 0;  ///< without its head
    bool here = false;
  };
  /// A message on its way.
  struct Flight {
    message::MessageId id;
    std::uint64_t end = 0;
    bool done = true;
  };

  CallStreamPlace(std::uint32_t number, std::uint32_t window)
      : index(number),
        written(window / kPieceCost),
        out(window),
        arrived(window / kPieceCost),
        opening(std::make_unique_for_overwrite<std::uint8_t[]>(kMaxPieceBytes + message::kMaxMetadataBytes)),
        flights(written.capacity()),
        held(arrived.capacity()) {}

  const std::uint32_t index;
  // Both's.
  std::atomic<bool> taken{false};         ///< a call has it
  std::atomic<bool> noted{false};         ///< the endpoint's thread is to look at it, and knows
  std::atomic<std::uint32_t> orders{0};   ///< the application's
  std::atomic<std::uint32_t> known{0};    ///< the endpoint's
  std::atomic<std::uint32_t> news{0};     ///< counts changes; who sleeps waits for the next
  SpscRing<Written> written;              ///< to the endpoint
  std::vector<std::uint8_t> out;          ///< of what is written and has not arrived
  std::atomic<std::uint64_t> out_end{0};  ///< of what has arrived: their places in `out` are free
  SpscRing<Read> arrived;                 ///< from the endpoint, in order
  std::atomic<std::uint32_t> given{0};    ///< pieces that the application has read and given back

  // Written before the other one may look: by who takes the place, finish() and the end.
  /// Request and metadata of a call that was taken: the endpoint's memory of them ends with the call, which the opener
  /// may give up while the application reads.
  const std::unique_ptr<std::uint8_t[]> opening;
  bool served = false;
  message::SessionId session{};
  std::uint16_t code = 0;
  std::span<const std::uint8_t> request{};
  std::span<const std::uint8_t> metadata{};
  Nanos deadline = message::kNever;
  StreamNews listener{};
  std::uint16_t answer_code = 0;
  std::uint32_t answer_length = 0;
  std::array<std::uint8_t, message::kInlineBytes> answer{};  ///< behind room for its head
  CallResult result{};

  // The application's.
  std::uint64_t write_end = 0;  ///< of what was written
  bool reading = false;         ///< it has a piece
  std::uint32_t reading_cost = 0;
  std::uint32_t given_cost = 0;  ///< of pieces given back since the endpoint's thread was told

  // The endpoint's.
  StreamPhase phase = StreamPhase::none;
  std::uint32_t generation = 1;
  std::uint32_t remote = 0;  ///< the peer's number of it
  bool listed = false;
  bool changed = false;
  message::MessageId message{};  ///< the request
  bool awaited = false;          ///< its response has not come
  bool lent = false;             ///< and is to be released
  std::uint32_t sent = 0;        ///< pieces
  std::uint32_t sent_cost = 0;
  std::uint32_t credit = 0;  ///< the peer's
  bool end_sent = false;
  bool has_next = false;
  Written next{};
  std::vector<Flight> flights;  ///< of pieces, by number
  std::uint32_t first_flight = 0;
  std::uint32_t next_flight = 0;
  std::array<message::MessageId, 4> small{};  ///< messages on their way with credit or the end
  std::uint32_t smalls = 0;                   ///< bit i: small[i] is
  std::vector<Held> held;                     ///< by number
  std::uint32_t expected = 0;                 ///< piece that is next
  std::uint32_t released = 0;                 ///< pieces whose memory was given back
  std::uint32_t beyond = 0;                   ///< largest number that came, and one
  std::uint32_t received_cost = 0;
  std::uint32_t released_cost = 0;
  std::uint32_t told_credit = 0;
  bool total_known = false;
  std::uint32_t total = 0;  ///< pieces of the peer
  bool observed = false;    ///< its begin was told
  Nanos began;
  std::uint64_t bytes_out = 0;
  std::uint64_t bytes_in = 0;
};

/// Contexts of messages of streams: this bit, the place's index, and which of its messages it is: the number of a
/// flight, or one of these.
inline constexpr std::uint64_t kStreamContext = std::uint64_t{1} << 63;
inline constexpr std::uint32_t kStreamRequest = 0xffffffff;
inline constexpr std::uint32_t kStreamSmall = 0x80000000;  ///< and the number among CallStreamPlace::small
[[nodiscard]] inline std::uint64_t stream_context(const CallStreamPlace& place, std::uint32_t which) {
  return kStreamContext | std::uint64_t{place.index} << 32 | which;
}

}  // namespace warpline::rpc
