// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "warpline/base/frame.h"
#include "warpline/base/host_device.h"
#include "warpline/base/units.h"
#include "warpline/queues/queue_layout.h"
#include "warpline/stream/internal/key_places.h"
#include "warpline/stream/internal/reply.h"
#include "warpline/stream/internal/take_segment.h"
#include "warpline/stream/lanes/lane_shape.h"
#include "warpline/stream/lanes/stream_board.h"

namespace warpline::stream {

// What host and GPU tell each other on a lane: the segments of a receive queue, a burst at a time, by one CTA. The host
// owns handshakes, timers, ends and replies, and so the list of connections; the lane owns what of each connection's
// bytes has arrived. A burst's slot lies in pinned memory:
//
//   the host writes:  BurstOrder, Segment[burst], one bit a descriptor (checksums are right), ConnectionChange[],
//                     WindowTell[]; then the slot's ready word
//   the lane writes:  the bytes of streams and how far they reach, then ConnectionRecord[], BurstResult and one byte a
//                     descriptor; then the slot's done word, with which the frames are the host's again
//
// Words hold the burst's sequence, counted from 1, in their upper half; ready words the descriptors' number in the
// lower.
//
// A lane with queues takes frames by itself (docs/gpu_io.md): the descriptors lie in a receive queue, and
// acknowledgements leave by a transmit queue, from buffers of frames that were received. Of the slots two things are
// left, each with a sequence of its own: an order, by the slot's ready word, and what came of a round, by its done
// word. A round is all orders that are ready, and then the frames that were posted before. What became of a frame is in
// the word by which its slot of the receive queue is released: the outcome, and `forward` if an acknowledgement was
// written into it.

/// A connection that the lane is to receive for from now on, or no more.
struct ConnectionChange {
  std::uint32_t connection = 0;
  std::uint32_t generation = 0;
  bool add = false;                               ///< else remove
  bool clear = false;                             ///< of one that is removed: its place on the board is nobody's
  ConnectionState state = ConnectionState::open;  ///< of one that is removed: how it ended
  bool timestamps = false;    ///< as in ReceiveState, which is otherwise as when it was made, of one that is added
  std::uint32_t initial = 0;  ///< likewise, as are the following
  std::uint32_t acknowledgement = 0;  ///< the only one that is believed
  std::uint32_t timestamp = 0;
  std::uint64_t window_end = 0;
  Nanos last_heard{};
  ConnectionKey key;
  PeerEnd peer;
};

/// What a connection's peer was told, or may be told next.
struct WindowTell {
  std::uint32_t connection = 0;
  std::uint32_t generation = 0;
  std::uint64_t window_end = 0;
  std::uint64_t acknowledged = 0;
  std::uint64_t announced = 0;
};

/// The head of a burst's slot.
struct BurstOrder {
  Nanos now{};
  std::uint32_t changes = 0;  ///< how many; they come before all tells
  std::uint32_t tells = 0;
};

/// What a burst did to one connection, with its state as it was when the burst had been taken. Of the state's ranges
/// only those are written that there are.
struct alignas(16) ConnectionRecord {
  std::uint32_t connection = 0;
  std::uint32_t generation = 0;
  BurstNotes notes;
  bool acknowledge = false;  ///< whether an acknowledgement is due: the lane takes it for sent
  bool written = false;      ///< whether `reply` is that acknowledgement; else it is nothing
  WrittenReply reply;
  alignas(16) ReceiveState state;
};

/// What a burst did in all.
struct BurstResult {
  std::uint64_t orders = 0;  ///< with queues: sequence behind the last order that was carried out
  Nanos now{};               ///< with queues: of the round
  std::uint32_t records = 0;
  std::uint32_t for_host = 0;  ///< frames whose outcome is kForHost
  std::uint64_t bytes = 0;     ///< stored
  std::uint32_t dispositions[kDispositions]{};
};

/// The outcome of a descriptor is a Disposition or one of these.
inline constexpr std::uint8_t kForHost =
    0xfe;                                      ///< no segment for a connection of the lane's: the host is to look at it
inline constexpr std::uint8_t kGoesOn = 0xff;  ///< it goes on with the frame of the descriptor before it

/// A slot's parts.
struct BurstSlot {
  BurstOrder* order;
  Segment* segments;
  std::uint32_t* checksums_right;
  ConnectionChange* changes;
  WindowTell* tells;
  BurstResult* result;
  std::uint8_t* outcomes;
  ConnectionRecord* records;
};

/// Where the parts of a lane's memory lie that host and GPU share.
class SlotLayout {
 public:
  explicit WARPLINE_HD SlotLayout(const LaneShape& shape) : shape_(shape) {
    constexpr std::size_t kLine = 64;
    std::size_t end = 0;
    const auto place = [&end](std::size_t bytes) {
      const std::size_t at = end;
      end = (end + bytes + kLine - 1) / kLine * kLine;
      return at;
    };
    place(sizeof(BurstOrder));
    segments_ = place(shape.burst * sizeof(Segment));
    checksums_ = place((shape.burst + 31) / 32 * sizeof(std::uint32_t));
    changes_ = place(shape.changes * sizeof(ConnectionChange));
    tells_ = place(shape.connections * sizeof(WindowTell));
    result_ = place(sizeof(BurstResult));
    outcomes_ = place(shape.burst);
    records_ = place(shape.burst * sizeof(ConnectionRecord));
    stride_ = end;
  }

  /// Returns the bytes of all slots.
  [[nodiscard]] WARPLINE_HD std::size_t total() const { return stride_ * shape_.slots; }
  [[nodiscard]] WARPLINE_HD BurstSlot slot(std::byte* slots, std::uint64_t sequence) const {
    std::byte* const at = slots + stride_ * (sequence & (shape_.slots - 1));
    return {reinterpret_cast<BurstOrder*>(at),
            reinterpret_cast<Segment*>(at + segments_),
            reinterpret_cast<std::uint32_t*>(at + checksums_),
            reinterpret_cast<ConnectionChange*>(at + changes_),
            reinterpret_cast<WindowTell*>(at + tells_),
            reinterpret_cast<BurstResult*>(at + result_),
            reinterpret_cast<std::uint8_t*>(at + outcomes_),
            reinterpret_cast<ConnectionRecord*>(at + records_)};
  }

 private:
  LaneShape shape_;
  std::size_t segments_, checksums_, changes_, tells_, result_, outcomes_, records_, stride_;
};

/// A word alone on its line of the cache.
struct alignas(64) LaneWord {
  std::uint64_t value;
};

/// Whom a lane receives for.
struct LaneStation {
  OwnEnd own;
  std::uint64_t secret = 0;   ///< of the hash by which it finds connections
  bool acknowledges = false;  ///< whether it writes acknowledgements
  bool discards = false;      ///< whether it puts no bytes into rings
};

/// A connection as the lane knows it.
struct LaneConnection {
  ReceiveState state;
  PeerEnd peer;
  BurstNotes notes;  ///< of `burst`
  ConnectionKey key;
  std::uint32_t generation;
  std::uint32_t burst;  ///< sequence of the last burst that brought a segment of it; 0: none did
  std::uint32_t frame;  ///< with queues, in that round: 1 and the place of its last frame that can be written to, or 0
  Nanos last_heard;
  bool known;  ///< whether it is the lane's

  /// Becomes the connection that is added.
  WARPLINE_HD void begin(const ConnectionChange& change) {
    *this = LaneConnection{};
    key = change.key;
    peer = change.peer;
    generation = change.generation;
    last_heard = change.last_heard;
    known = true;
    state.initial = change.initial;
    state.timestamps = change.timestamps;
    state.timestamp = change.timestamp;
    state.oldest_acknowledgement = state.newest_acknowledgement = change.acknowledgement;
    state.window_end = change.window_end;
  }
  /// Learns what its peer was told, unless that was about one before it.
  WARPLINE_HD void learn(const WindowTell& tell) {
    if (!known || generation != tell.generation) return;
    if (tell.window_end > state.window_end) state.window_end = tell.window_end;
    if (tell.acknowledged > state.acknowledged) state.acknowledged = tell.acknowledged;
    if (tell.announced > peer.announced) peer.announced = tell.announced;
  }
  /// Says what the burst was to it in a record that has its state, and takes for sent what is to be acknowledged;
  /// `writes`: it writes that. What is challenged is answered by the host, once for all.
  WARPLINE_HD void report(const LaneStation& station, std::uint32_t index, Nanos now, bool writes,
                          ConnectionRecord& record, WrittenReply& reply) {
    record.connection = index;
    record.generation = generation;
    record.notes = notes;
    record.acknowledge = notes.touched && wants_acknowledgement(state);
    record.written = record.acknowledge && writes && notes.challenges == 0;
    if (record.written) {
      reply.length = static_cast<std::uint16_t>(emit(acknowledge(key, state, peer, station.own, now), reply.bytes));
      reply.announced = peer.announced;
    } else if (record.acknowledge) {
      state.acknowledged = state.next;
    }
    state.acknowledge_now = false;
    state.pushed = false;
    state.duplicate = {};
  }
};

/// Marks of frames in a lane's receive queue.
inline constexpr std::uint8_t kRightMark = queues::ReceiveQueueView::kChecksumsRight;
inline constexpr std::uint8_t kRoomMark = 2;  ///< from where the frame begins kLongestReply bytes may be written

/// Bytes of the shortest frame of Ethernet, without FCS: not every device pads to it.
inline constexpr std::uint32_t kShortestFrame = 60;

/// Returns how many slots a lane with queues takes at a time; the last of them may have further pieces behind it.
[[nodiscard]] WARPLINE_HD constexpr std::uint32_t slots_at_once(const LaneShape& shape) {
  return shape.burst - (kMaxSegments - 1);
}
/// Returns how many of `count` slots, the first of which is that, lie one behind the other.
[[nodiscard]] WARPLINE_HD inline std::uint32_t slots_in_one_piece(const queues::ReceiveQueueView& queue,
                                                                  std::uint64_t first, std::uint32_t count) {
  const auto left = static_cast<std::uint32_t>(queue.slot_mask + 1 - (first & queue.slot_mask));
  return count < left ? count : left;
}

/// Bytes on their way from a frame into a ring.
struct CopyPiece {
  std::uint8_t* to;
  const std::uint8_t* from;
  std::uint32_t length;
};

/// All that a lane works with; a kernel has it from memory of its GPU.
struct LaneView {
  LaneShape shape;
  LaneStation station;
  std::size_t place_mask;        ///< one less than there are places
  queues::QueuePairView queues;  ///< if there are any
  // In pinned memory.
  LaneWord* taken;  ///< with queues, the host writes: rounds before this sequence have been taken in
  LaneWord* now;    ///< with queues, the host writes: ns, as Nanos
  LaneWord* ready;
  LaneWord* done;
  LaneWord* stop;  ///< not 0: the lane ends when there is no burst
  std::byte* slots;
  // In memory of the GPU.
  LaneConnection* connections;
  std::uint32_t* places;
  CopyPiece* pieces;    ///< kMostPieces for each descriptor of a burst
  Segment* segments;    ///< the burst's descriptors
  std::uint8_t* rings;  ///< of connection i from 2 * ring_bytes * i on, each mapped twice
  StreamBoard board;    ///< what consumers see; of it the words that they write are in pinned memory

  /// Returns what the board says of a connection whose stream has come so far.
  [[nodiscard]] static WARPLINE_HD std::uint64_t reach_word(const ReceiveState& state) {
    return StreamPlace::word_of(state.next, state.end_reached ? ConnectionState::finished : ConnectionState::open);
  }
};

/// Carries out what the host ordered of a connection. One thread.
WARPLINE_HD inline void carry_out(const LaneView& lane, const ConnectionChange& change) {
  KeyPlaces places(lane.places, lane.place_mask, lane.station.secret);
  LaneConnection& connection = lane.connections[change.connection];
  if (connection.known) {
    places.erase(change.connection,
                 [&lane](std::uint32_t index) -> const ConnectionKey& { return lane.connections[index].key; });
    connection.known = false;
  }
  StreamPlace& place = lane.board.places[change.connection];
  if (change.add) {
    connection.begin(change);
    place.begin(change.generation);
    places.insert(change.key, change.connection);
  } else if (change.clear) {
    place.clear();
  } else {
    place.end(change.state);
  }
}

/// A frame in pieces is cut where its descriptors are, and where gaps are.
inline constexpr std::uint32_t kMostPieces = Acceptance::kMaxPieces + 1;

[[nodiscard]] constexpr std::size_t places_of(const LaneShape& shape) {
  return std::bit_ceil(std::size_t{shape.connections} * 2);
}

/// Where the parts of a lane's memory lie: what host and GPU share, and what is the lane's alone. Both begin as zeros,
/// but for the places, which are KeyPlaces::kNone.
class LaneLayout {
 public:
  explicit LaneLayout(const LaneShape& shape) : shape_(shape) {
    std::size_t end = 0;
    const auto place = [&end](std::size_t bytes) {
      const std::size_t at = end;
      end = (end + bytes + 255) / 256 * 256;
      return at;
    };
    connections_ = place(shape.connections * sizeof(LaneConnection));
    places_ = place(places_of(shape) * sizeof(std::uint32_t));
    pieces_ = place(std::size_t{shape.burst} * kMostPieces * sizeof(CopyPiece));
    segments_ = place(shape.burst * sizeof(Segment));
    board_ = place(shape.connections * sizeof(StreamPlace));
    own_ = end;
  }

  [[nodiscard]] std::size_t shared_bytes() const { return board_words() + board_words_bytes(); }
  [[nodiscard]] std::size_t own_bytes() const { return own_; }
  [[nodiscard]] std::size_t places_begin() const { return places_; }  ///< in the lane's own memory

  /// Returns the lane of that memory. `rings` is as LaneView has it.
  [[nodiscard]] LaneView view(std::byte* shared, std::byte* own, std::uint8_t* rings,
                              const LaneStation& station) const {
    auto* const word = reinterpret_cast<LaneWord*>(shared);
    auto* const board_word = reinterpret_cast<LaneWord*>(shared + board_words());
    auto* const released = reinterpret_cast<std::uint64_t*>(board_word + 1);
    return {.shape = shape_,
            .station = station,
            .place_mask = places_of(shape_) - 1,
            .queues = {},
            .taken = word + 1,
            .now = word + 2,
            .ready = word + kSingleWords,
            .done = word + kSingleWords + shape_.slots,
            .stop = word,
            .slots = shared + words(),
            .connections = reinterpret_cast<LaneConnection*>(own + connections_),
            .places = reinterpret_cast<std::uint32_t*>(own + places_),
            .pieces = reinterpret_cast<CopyPiece*>(own + pieces_),
            .segments = reinterpret_cast<Segment*>(own + segments_),
            .rings = rings,
            .board = {.count = shape_.connections,
                      .ring_bytes = shape_.ring_bytes,
                      .rings = rings,
                      .places = reinterpret_cast<StreamPlace*>(own + board_),
                      .released = released,
                      .groups = released + shape_.connections,
                      .changed = &board_word->value}};
  }

 private:
  static constexpr std::size_t kSingleWords = 3;  ///< that are no slot's

  [[nodiscard]] std::size_t words() const { return (kSingleWords + 2 * std::size_t{shape_.slots}) * sizeof(LaneWord); }
  /// Behind the slots: the word that something has changed, alone on its line, then those of places and groups.
  [[nodiscard]] std::size_t board_words() const { return words() + SlotLayout(shape_).total(); }
  [[nodiscard]] std::size_t board_words_bytes() const {
    const std::size_t places = shape_.connections;
    return sizeof(LaneWord) + (places + StreamBoard::groups_of(shape_.connections)) * sizeof(std::uint64_t);
  }

  LaneShape shape_;
  std::size_t connections_, places_, pieces_, segments_, board_, own_;
};

}  // namespace warpline::stream
