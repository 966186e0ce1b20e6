// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "warpline/base/address.h"
#include "warpline/base/frame.h"
#include "warpline/base/result.h"
#include "warpline/base/units.h"
#include "warpline/stream/receiver_counters.h"
#include "warpline/stream/receiver_settings.h"
#include "warpline/stream/stream_events.h"

namespace warpline::stream {

class ReceiverCore;
class SegmentLane;
struct StreamBoard;

/// What is known of a connection.
struct StreamView {
  SocketAddress peer;                             ///< the sender
  SocketAddress local;                            ///< the address and port that it connected to
  ConnectionState state = ConnectionState::open;  ///< how it stands
  std::span<const std::uint8_t> bytes;  ///< what can be read, in one piece, until release() of it: where the rings are;
                                        ///< none with ReceiverSettings::discards
  std::uint64_t urgent_end = 0;         ///< bytes of the stream before it are urgent (RFC 6093); 0: none was called so
  std::uint64_t begin = 0;              ///< the first of `bytes`, counted from the stream's beginning
};

/// Where frames go that a lane leaves to the host: the owner's chance to answer those that are no TCP.
class OtherFrames {
 public:
  virtual ~OtherFrames() = default;
  /// True if the frame, whose token that is, is none for the receiver: it is the owner's again, and no longer counted.
  /// Else its descriptors are as it lies now.
  [[nodiscard]] virtual bool take(FrameRef frame, void* token) = 0;
};

/// A frame that a lane with queues has written over one that it was lent, and has posted to be sent.
struct PostedFrame {
  void* token;           ///< the frame's, which is the owner's again
  std::uint32_t length;  ///< bytes from where the frame began: what is to be sent
};

/// Receives the bytes of TCP connections (RFC 9293, 7323, 2018, 2883, 5961) that peers open, each into a ring of its
/// own, where they are stored once, at their place, in whichever order segments come. Does no I/O and knows no clock:
/// it takes frames and times and returns frames and events. Sends no bytes of its own.
///
/// What it acknowledged it has stored, and the window that it announces is free space of the ring: nothing is
/// overwritten before the application has released it. One thread makes all calls; times never go back.
///
/// With a SegmentLane, a thread of the host or a GPU takes the segments of established connections, into rings of the
/// lane's. Frames are then lent by give(), a burst at a time, and collect() takes in what became of them; handshakes,
/// resets, ends, timers and replies stay here, but for acknowledgements that a lane writes where the settings say so.
/// Peers cannot tell the difference.
class StreamReceiver {
 public:
  /// Takes all memory that it ever needs. Errors: usage, for settings that make no sense; environment, if the system
  /// has no memory.
  [[nodiscard]] static Result<StreamReceiver> create(const ReceiverSettings& settings, Nanos now);
  /// The same with a lane, of the shape that lane_shape() returns for these settings, which it starts.
  [[nodiscard]] static Result<StreamReceiver> create(const ReceiverSettings& settings, Nanos now,
                                                     std::unique_ptr<SegmentLane> lane);
  StreamReceiver(StreamReceiver&&) noexcept;  ///< the other one is only good to be destroyed or assigned to
  StreamReceiver& operator=(StreamReceiver&&) noexcept;
  ~StreamReceiver();

  /// Takes a frame, which it copies from and does not keep. `checksums_are_right`: the device that received it has seen
  /// to that. Ends each burst with end_burst(). Not with a lane.
  void receive(FrameRef frame, bool checksums_are_right, Nanos now);
  /// Decides what is acknowledged of the frames since the last call. With a lane: hands it the frames.
  void end_burst(Nanos now);

  /// Whether it has a lane; what follows up to stop_lane() is for those that have.
  [[nodiscard]] bool has_lane() const;
  /// Returns the descriptors, which are pieces of frames, that give() takes now: none while the lane is behind, or
  /// frames are not taken back.
  [[nodiscard]] std::uint32_t room() const;
  /// Lends a frame of no more pieces than room(), in memory that the lane reaches: it stays as it is until take_back()
  /// tells its token, or OtherFrames, or take_posted(). The next end_burst() hands it to the lane. `has_room`: from
  /// where it begins kReplyBytes lie in its first piece's buffer, and nobody else needs them: a lane with queues may
  /// write an acknowledgement there.
  void give(FrameRef frame, bool checksums_are_right, void* token, bool has_room = false);
  /// Takes in what became of the bursts that the lane is done with, and decides what is acknowledged. `others`, if
  /// there is one, is asked about each frame first that is none of a connection of the lane's. True if there was one.
  bool collect(OtherFrames* others, Nanos now);
  /// Writes tokens of frames that are their owner's again. Returns how many; fewer than there is place for: no more.
  [[nodiscard]] std::uint32_t take_back(std::span<void*> tokens);
  /// Whether the lane takes frames out of queues by itself, and posts what it writes (docs/gpu_io.md).
  [[nodiscard]] bool has_queues() const;
  /// Takes frames that a lane with queues has posted to be sent. Returns how many; fewer than there is place for: no
  /// more.
  [[nodiscard]] std::uint32_t take_posted(std::span<PostedFrame> frames);
  /// Returns how many descriptors it holds: of frames that are lent and that collect() has not seen the end of.
  [[nodiscard]] std::uint64_t in_flight() const;
  /// Returns why the lane takes no more, if so: it has failed, or takes nothing for longer than
  /// ReceiverSettings::lane_patience. To be asked now and then, many times in that.
  [[nodiscard]] std::optional<Error> lane_failure(Nanos now);
  /// Ends the lane behind what it was handed, and waits for that, unless it has failed: nothing reads frames or writes
  /// to rings any more. All frames are their owner's again; those of which collect() has not seen what became of them
  /// are counted as `lane_ended`. At the end.
  void stop_lane();
  /// Does what is due. To be called when next_deadline() has come.
  void advance(Nanos now);
  /// Returns when advance() has something to do; it may turn out to be later.
  [[nodiscard]] Nanos next_deadline() const;

  /// Writes the next frame to be sent into `out`, which has at least kReplyBytes. Returns its length; 0 if there is
  /// none.
  [[nodiscard]] std::uint32_t next_reply(std::span<std::uint8_t> out, Nanos now);
  /// Bytes of the longest frame that next_reply() writes: IPv6 with all options.
  static constexpr std::size_t kReplyBytes = 14 + 40 + 60;

  /// Returns the next event; none if nothing happened. A connection has one at a time, so that `readable` is what there
  /// is now.
  [[nodiscard]] std::optional<StreamEvent> poll();
  /// Returns how a connection stands; none if it is closed.
  [[nodiscard]] std::optional<StreamView> view(ConnectionId connection) const;
  /// Gives the first `bytes` of what can be read back: their place is free. False if there are not so many, or it is
  /// consumers who do that.
  bool release(ConnectionId connection, std::uint64_t bytes);
  /// Ends a connection, whose name is void from now on. One whose bytes all came is closed in order; any other one is
  /// aborted by a reset, so that the peer does not believe that what it sent was read.
  void close(ConnectionId connection, Nanos now);
  /// Ends a connection by a reset, also one whose bytes all came: for who could not make use of them. Resets wait for
  /// next_reply(): as many as there may be connections at once.
  void abort(ConnectionId connection, Nanos now);
  /// Returns where consumers find what the lane takes, and say what they have released (ReceiverSettings::consumers).
  /// They end before the receiver does. A connection that is closed or aborted stays there until its consumer has
  /// finished it: only then its place is another one's. collect() takes in what consumers say.
  [[nodiscard]] const StreamBoard& board() const;
  /// Returns what keeps the memory of its rings mapped, also when the receiver is gone.
  [[nodiscard]] std::shared_ptr<const void> rings() const;

  [[nodiscard]] const ReceiverCounters& counters() const;  ///< any thread may read them
  [[nodiscard]] std::uint32_t connections() const;         ///< that have a place now

 private:
  explicit StreamReceiver(std::unique_ptr<ReceiverCore> core);
  std::unique_ptr<ReceiverCore> core_;
};

}  // namespace warpline::stream
