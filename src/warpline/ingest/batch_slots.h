// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "warpline/base/result.h"
#include "warpline/base/units.h"
#include "warpline/handoff/ring_layout.h"

namespace warpline::ingest {

/// Packets in a slot begin at multiples of `kSlotAlignment`, whole words for a GPU's widest load.
inline constexpr std::uint32_t kSlotAlignment = 16;  // bytes
[[nodiscard]] constexpr std::uint32_t slot_room(std::uint32_t frame_bytes) {
  return (frame_bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
}

/// Returns the bytes of the longest frame that an MTU allows: Ethernet header, two VLAN tags and layer-3 packet.
[[nodiscard]] constexpr std::uint32_t longest_frame(std::uint16_t mtu) { return mtu + 14U + 2 * 4; }
/// Returns the bytes of a slot for `packets` frames of the longest that an MTU allows, with two VLAN tags.
[[nodiscard]] constexpr std::uint64_t batch_bytes(std::uint16_t packets, std::uint16_t mtu) {
  return std::uint64_t{packets} * slot_room(longest_frame(mtu));
}

/// Returns how many batches of `slot_bytes` may be with the consumer at a time: a power of two, at most `most`, that
/// `budget` holds. It is a usage error if that is fewer than two, which a copy beside a consumer needs.
[[nodiscard]] Result<std::uint32_t> slots_within(Bytes budget, std::uint64_t slot_bytes, std::uint32_t most);

struct BatchSlotsShape {
  std::uint32_t slots = 16;      ///< batches, a power of two
  std::uint64_t slot_bytes = 0;  ///< of a batch, a multiple of kSlotAlignment
  std::optional<int> gpu = {};   ///< CUDA ordinal whose memory the consumer reads; unset: host memory
  bool pulled = false;           ///< the consumer's kernel copies each batch, because it stays and waits for it anyway
  bool naive = false;            ///< pageable staging and two synchronous copies a batch, the staging cleared after
};

/// `BatchSlots` is the memory of one path that copies: for each slot of its burst ring a place where batches are
/// gathered, and one of the same size where the consumer reads them. One thread makes all calls, except for views.
class BatchSlots {
 public:
  /// Allocates all memory and streams that it will ever have; with a GPU, on that GPU.
  [[nodiscard]] static Result<std::unique_ptr<BatchSlots>> create(const BatchSlotsShape& shape);
  virtual ~BatchSlots() = default;
  BatchSlots(const BatchSlots&) = delete;
  BatchSlots& operator=(const BatchSlots&) = delete;

  /// Returns where the batch in `slot` is gathered.
  [[nodiscard]] std::byte* staging(std::uint64_t slot) const { return staging_ + slot * shape_.slot_bytes; }
  /// Returns where the consumer finds it.
  [[nodiscard]] std::byte* place(std::uint64_t slot) const { return places_ + slot * shape_.slot_bytes; }
  /// Queues the copy of the first `bytes` of a slot and, behind it, that `word` be the slot's ready word for kernels.
  /// False when the GPU takes nothing more; failure() says why.
  [[nodiscard]] virtual bool submit(std::uint64_t slot, std::size_t bytes, std::uint64_t word) = 0;
  [[nodiscard]] virtual std::optional<Error> failure() const { return std::nullopt; }
  /// Returns ready words in GPU memory, one per slot, which change behind the copies; null if the ring's own are
  /// enough.
  [[nodiscard]] virtual RingWord* ready_words() const { return nullptr; }
  /// Returns the bytes from a place to its staging memory, if the consumer's kernel copies; 0: submit() does.
  [[nodiscard]] virtual std::ptrdiff_t pull() const { return 0; }
  /// Returns the bytes of GPU memory that the slots take.
  [[nodiscard]] virtual Bytes gpu_bytes() const { return {}; }

  [[nodiscard]] const BatchSlotsShape& shape() const { return shape_; }

 protected:
  explicit BatchSlots(const BatchSlotsShape& shape) : shape_(shape) {}

  BatchSlotsShape shape_;
  std::byte* staging_ = nullptr;
  std::byte* places_ = nullptr;
};

/// Does what create() does, for the memory of a GPU.
[[nodiscard]] Result<std::unique_ptr<BatchSlots>> create_gpu_slots(const BatchSlotsShape& shape);

}  // namespace warpline::ingest
