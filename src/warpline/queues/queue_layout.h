// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "warpline/base/device/ring_words.h"
#include "warpline/base/device/shared_words.h"
#include "warpline/base/frame.h"
#include "warpline/base/host_device.h"

namespace warpline::queues {

// The queues of GPU-driven I/O. A kernel that stays takes frames out of a receive queue as they come, gives each slot
// back with what became of its frame, and posts what is to be sent in a transmit queue. Behind the queues is a backend.
// The one that there is, PacketQueues, is a proxy on the CPU: it moves mbufs between a port and the queues and looks at
// no packet. docs/gpu_io.md says what another one, such as a NIC's own queues, has to provide.
//
// Slots and descriptors are named by sequences, which count up and never wrap; each lies at its sequence modulo the
// queue's size, a power of two. All functions here are for one consumer of a queue pair: a thread, or a CTA of which
// one thread makes the calls that are not said to be for any thread.

/// `ReceiveQueueView` is a receive queue as its consumer sees it. A frame of several pieces has a slot for each, its
/// descriptors always lie one behind the other, and the first of them stands for the frame.
struct ReceiveQueueView {
  std::uint64_t* posted;    ///< the backend writes: the sequence behind the last descriptor
  Segment* segments;        ///< slots, and kMaxSegments - 1 more for a frame that begins in the last ones
  std::uint8_t* marks;      ///< one a slot, the backend writes: of a frame's first, what the device said of it
  std::uint64_t* released;  ///< one word a slot, the consumer writes: {sequence:32, worked:16, verdict:16}
  std::uint32_t slot_mask;  ///< slots less one

  /// Returns the sequence behind the last descriptor that may be read.
  [[nodiscard]] WARPLINE_HD std::uint64_t load_posted() const { return load_acquire(posted); }
  /// Returns the descriptor of a slot that is posted; of the first one of a frame also those behind it.
  [[nodiscard]] WARPLINE_HD Segment* at(std::uint64_t sequence) const { return segments + (sequence & slot_mask); }
  /// Any thread, once for the first slot of each frame: the backend may have the slots again, and the frame's buffers
  /// unless it is `forward`, which says that it was posted in the transmit queue. What the calling thread wrote to the
  /// frame is visible to who sees this. `worked` is not 0 if the frame was worked on; which number it is, consumer and
  /// owner of the backend agree upon.
  WARPLINE_HD void release(std::uint64_t sequence, Verdict verdict, std::uint16_t worked) const {
    store_release(released + (sequence & slot_mask),
                  pack_ring_word(sequence, static_cast<std::uint16_t>(verdict), worked));
  }

  static constexpr std::uint8_t kChecksumsRight = 1;  ///< a mark: the device found all checksums of the frame right
};

/// `TransmitDescriptor` names a frame that is to be sent: that of a slot of the receive queue of the same pair, by the
/// sequence of its first piece. The descriptors there stay as they are until it was sent. It is one word, {sequence:48,
/// length:16}, so that those of a burst cross the bus in whole lines.
class TransmitDescriptor {
 public:
  /// `length`: bytes to be sent, of the first piece alone; 0: the whole frame.
  WARPLINE_HD explicit TransmitDescriptor(std::uint64_t sequence, std::uint16_t length = 0)
      : word_(sequence << kLengthBits | length) {}

  /// Returns the sequence of a slot that is in hand, of which `oldest` is the first.
  [[nodiscard]] WARPLINE_HD std::uint64_t sequence(std::uint64_t oldest) const {
    return oldest + (((word_ >> kLengthBits) - oldest) << kLengthBits >> kLengthBits);
  }
  [[nodiscard]] WARPLINE_HD std::uint16_t length() const { return static_cast<std::uint16_t>(word_); }

 private:
  static constexpr unsigned kLengthBits = 16;
  std::uint64_t word_;
};

/// `TransmitQueueView` is a transmit queue as its producer, the consumer of frames, sees it.
struct TransmitQueueView {
  std::uint64_t* doorbell;   ///< the producer writes: the sequence behind the last descriptor
  std::uint64_t* completed;  ///< the backend writes: the sequence behind the last descriptor that it needs no more
  TransmitDescriptor* descriptors;  ///< slots
  std::uint32_t slot_mask;          ///< slots less one

  /// Returns the sequence before which all descriptors are the producer's again.
  [[nodiscard]] WARPLINE_HD std::uint64_t load_completed() const { return load_acquire(completed); }
  /// Any thread: returns where a descriptor is to be written.
  [[nodiscard]] WARPLINE_HD TransmitDescriptor& at(std::uint64_t sequence) const {
    return descriptors[sequence & slot_mask];
  }
  /// Rings the doorbell: everything before `end` is to be sent. What was written to descriptors and frames before is
  /// visible to who sees this; of a CTA, what its other threads wrote before a barrier.
  WARPLINE_HD void ring(std::uint64_t end) const { store_release(doorbell, end); }
};

/// `QueuePairView` is what the consumer of a queue pair is given; trivially copyable, so a kernel takes it by value.
struct QueuePairView : StopView {
  ReceiveQueueView receive;
  TransmitQueueView transmit;
  std::uint64_t first_sequence;  ///< of both queues
};

/// `QueueCursor` is how far the consumer of a queue pair is.
struct QueueCursor {
  std::uint64_t next;       ///< sequence of the first slot that was not taken
  std::uint64_t sent;       ///< sequence of the next transmit descriptor
  std::uint64_t completed;  ///< of the transmit queue, as last seen

  [[nodiscard]] static WARPLINE_HD QueueCursor begin(const QueuePairView& queues) {
    return {queues.first_sequence, queues.first_sequence, queues.first_sequence};
  }
  /// Returns how many slots may be taken now, `most` at most, of which each may send a frame. The last of them may have
  /// further pieces of its frame behind it.
  [[nodiscard]] WARPLINE_HD std::uint32_t look(const QueuePairView& queues, std::uint32_t most) {
    const std::uint64_t there = queues.receive.load_posted() - next;
    if (there == 0) return 0;
    const auto wanted = there < most ? static_cast<std::uint32_t>(there) : most;
    const std::uint64_t slots = std::uint64_t{queues.transmit.slot_mask} + 1;
    if (slots - (sent - completed) < wanted) completed = queues.transmit.load_completed();
    const std::uint64_t room = slots - (sent - completed);
    return room < wanted ? static_cast<std::uint32_t>(room) : wanted;
  }
};

}  // namespace warpline::queues
