// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "warpline/base/statistics/counter.h"
#include "warpline/base/units.h"
#include "warpline/message/types.h"
#include "warpline/packet/headers/message_header.h"
#include "warpline/rpc/call.h"

namespace warpline::rpc {

class CallStreams;
struct CallStreamPlace;

/// Most bytes of one piece, and of a request that opens a stream.
inline constexpr std::uint32_t kMaxPieceBytes = 16'384 - packet::MessageStreamHead::kLength;
/// Most bytes of an answer that ends a stream.
inline constexpr std::uint32_t kMaxAnswerBytes = message::kInlineBytes - packet::MessageStreamHead::kLength;
/// What a piece costs of a window beside its bytes and their head, so that many small ones are bounded, too.
inline constexpr std::uint32_t kPieceCost = 256;
/// Two pieces of the longest find room in any window.
inline constexpr std::uint32_t kLeastStreamWindow = 36'864;

/// How many calls in pieces there may be, and how much of each lies here.
struct CallStreamSettings {
  std::uint32_t streams = 0;  ///< opened and taken, at once, 4096 at most; 0: none are taken
  /// Bytes of each that may wait here to be sent, and as many of its peer's until they are read, kLeastStreamWindow at
  /// least; a piece takes kPieceCost beside its own. A session has no more streams than fill half of
  /// EndpointConfig::receive_window, so that unread pieces hold up no other requests of it; a MessageHost makes that 16
  /// windows long at least.
  std::uint32_t window = 131'072;

  /// Most pieces of peers that wait here to be read: of EndpointConfig::max_messages. A MessageHost adds them.
  [[nodiscard]] std::uint64_t most_pieces() const {
    return std::uint64_t{streams} * (window / (kPieceCost + packet::MessageStreamHead::kLength));
  }
  /// Most bytes of receive memory that they take, where none is in a block more than 6 times as long as it costs: of
  /// EndpointConfig::receive_bytes. A MessageHost adds them; they are memory only when they are used.
  [[nodiscard]] std::uint64_t most_bytes() const { return std::uint64_t{6} * streams * window; }
};

/// Written by the endpoint's thread, read by any.
struct CallStreamCounters {
  Counter opened;         ///< here, and sent
  Counter taken;          ///< opened by peers, and handed out
  Counter refused;        ///< opened by peers, and declined: nobody takes them, or no place or window is left for them
  Counter pieces_out;     ///< handed to the endpoint
  Counter pieces_in;      ///< put in their places
  Counter credits_out;    ///< messages with nothing but credit
  Counter malformed;      ///< messages of streams whose heads make no sense
  Counter unknown;        ///< of no stream there is, as pieces that crossed its end
  Counter beyond_credit;  ///< pieces that were not paid for: their streams are broken
  Counter repeated;       ///< pieces or ends that came before, or behind the end: their streams are broken
  Counter broken;         ///< streams ended since their peers contradicted themselves
};

/// Whom it is told that something is new of a stream: pieces, room, or its end. On the thread of the endpoint, which
/// goes on when `told` returns.
struct StreamNews {
  void (*told)(void* context) = nullptr;  ///< throws nothing; may use the stream, and let it go
  void* context = nullptr;                ///< handed to it
};

/// A call whose request and response come in pieces, as any thread asks for it. All of it is Priority::normal: what is
/// high goes before it.
struct StreamCall {
  message::SessionId session{};             ///< of that host
  std::span<const std::uint8_t> request{};  ///< the first bytes, up to kMaxPieceBytes; copied by the call
  std::uint16_t code = 0;                   ///< the application's, handed to the peer with the request
  std::span<const std::uint8_t>
      metadata{};                    ///< likewise, kMaxMetadataBytes at most; untouched until the call has ended
  Nanos patience = message::kNever;  ///< a duration, from now on, after which it ends with the status `deadline`
  StreamNews news{};                 ///< for who has the endpoint's thread; others wait
};

/// What try_read() found.
enum class StreamRead : std::uint8_t {
  piece,    ///< one piece
  nothing,  ///< none yet
  end,      ///< there will be none any more
};

/// One end of a call in pieces: of who opened it, whose pieces are the request, or of who took it, whose pieces are
/// the response. Pieces arrive whole, in order, once each. What is written waits for credit of the reader, who gives
/// it by reading: a slow reader stops a fast writer.
///
/// One thread reads and one writes at a time, the same or two, any threads. Calls that sleep are for other threads than
/// the host's: in a callback of the host, where they would sleep for ever, write() and read() return false and wait()
/// `cancelled`, and the stream goes on. To be destroyed before the host.
class CallStream {
 public:
  CallStream() = default;  ///< of no call
  CallStream(CallStream&& other) noexcept : streams_(std::exchange(other.streams_, nullptr)), place_(other.place_) {}
  CallStream& operator=(CallStream&& other) noexcept;
  /// As close().
  ~CallStream() { close(); }
  explicit operator bool() const { return streams_ != nullptr; }  ///< it is of a call

  // The opener of a call that was taken said these. Request and metadata are there until close().
  [[nodiscard]] message::SessionId session() const;
  [[nodiscard]] std::uint16_t code() const;
  [[nodiscard]] std::span<const std::uint8_t> request() const;
  [[nodiscard]] std::span<const std::uint8_t> metadata() const;
  [[nodiscard]] Nanos deadline() const;  ///< when the opener gives it up, by the endpoint's clock; kNever

  /// Has news of it told: by the endpoint's thread, where the call was taken. Others wait instead.
  void listen(const StreamNews& news);

  // Writing.
  /// Copies one piece of up to kMaxPieceBytes. False: it has no room now, is too long, or nobody takes pieces any more.
  bool try_write(std::span<const std::uint8_t> piece);
  /// Sleeps until all is copied, what is longer than kMaxPieceBytes as several pieces. False: the call has ended.
  bool write(std::span<const std::uint8_t> bytes);
  /// The opener has written all: its peer reads the end. The call goes on.
  void end_writing();
  /// Who took the call has written all: this is the answer, with which it ends when all pieces have left. Once; of up
  /// to kMaxAnswerBytes, false: it is longer.
  bool finish(std::uint16_t code, std::span<const std::uint8_t> answer = {});

  // Reading.
  /// Takes the next piece, which stays until the next call here or close().
  StreamRead try_read(std::span<const std::uint8_t>& piece);
  /// Sleeps until there is one. False: there will be none; see wait() whether all has come.
  bool read(std::span<const std::uint8_t>& piece);

  // Its end.
  /// The call has ended: an answer, with all pieces before it, has come or is on its way; or it failed. Any thread.
  [[nodiscard]] bool ended() const;
  /// Sleeps until it has. The opener reads to the end before, or the answer does not come. Until close() the result's
  /// data is there. Where the call was taken `ok` says that the answer was given, `cancelled` that its opener gave up.
  const CallResult& wait();
  /// Ends the call early; the opener hears that it was declined, who took it that it was cancelled. Any thread.
  void cancel();
  /// Cancels the call unless it has ended or its answer was given, and gives all up.
  void close();

 private:
  friend class CallStreams;
  CallStream(CallStreams& streams, CallStreamPlace& place) : streams_(&streams), place_(&place) {}
  template <typename Try>
  void sleep_until(const Try& done);

  CallStreams* streams_ = nullptr;
  CallStreamPlace* place_ = nullptr;
};

/// What opening returns.
struct OpenedStream {
  message::CallStatus status = message::CallStatus::ok;  ///< no_memory: there are as many as may be; too_long
  CallStream stream;                                     ///< of a call, if ok
};

}  // namespace warpline::rpc
