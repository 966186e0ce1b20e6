// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "warpline/vnic/copy_ops.h"

namespace warpline::vnic {

/// A queue's way to the program's copy engine: puts copies together to batches, and knows in which order they land.
/// Owner: whoever runs the device for the queue.
class CopyLane {
 public:
  static constexpr std::uint32_t kMostCopies = RTE_NET_VNIC_MOST_COPIES;

  /// What waits for a batch.
  struct Batch {
    std::uint32_t descriptors = 0;
    std::uint32_t frames = 0;
    std::uint64_t position = 0;  ///< in the device's memory for payload, behind the last frame; the owner's to count
    std::uint64_t landed_at = 0;
  };

  CopyLane() = default;
  ~CopyLane() { close(); }
  CopyLane(const CopyLane&) = delete;
  CopyLane& operator=(const CopyLane&) = delete;

  /// 0 or -ENOMEM. Control thread.
  [[nodiscard]] int open(const rte_net_vnic_copy_engine& engine, rte_net_vnic_direction direction, std::uint16_t queue);
  /// While nothing is under way. Control thread.
  void close();

  /// Whether the batch that is put together takes so many more copies.
  [[nodiscard]] bool takes(std::uint32_t copies) const {
    return !refused_ && end_ - begin_ < RTE_NET_VNIC_MOST_BATCHES && copies_ + copies <= kMostCopies;
  }
  /// Only as many as it takes.
  void add(void* to, const void* from, std::uint32_t length) {
    if (length != 0) list_[copies_++] = {to, from, length};
  }
  /// What else waits for it. It may be without any copy, and has landed when those before it have.
  void note(std::uint32_t descriptors, std::uint32_t frames, std::uint64_t position) {
    Batch& batch = at(end_);
    batch.descriptors += descriptors;
    batch.frames += frames;
    batch.position = position;
    noted_ = true;
  }
  /// Ends the batch, if there is something in it, and hands it to the engine. False: it takes none now, or has failed;
  /// until it does, nothing can be added.
  bool submit();

  /// Asks what has landed.
  void look();
  /// The oldest batch, if it has landed; until pop().
  [[nodiscard]] const Batch* landed() const {
    const Batch& oldest = at(begin_);
    return begin_ != end_ && oldest.landed_at <= landed_ ? &oldest : nullptr;
  }
  /// The oldest batch after a failure, landed or not, the one that was put together last; until pop().
  [[nodiscard]] const Batch* lost();
  void pop() { ++begin_; }

  /// Something has not landed, or was not handed over yet.
  [[nodiscard]] bool busy() const { return begin_ != end_ || noted_; }
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  static constexpr std::uint32_t kBatches = 2 * RTE_NET_VNIC_MOST_BATCHES;  ///< one more is put together

  [[nodiscard]] Batch& at(std::uint64_t index) { return batches_[index % kBatches]; }
  [[nodiscard]] const Batch& at(std::uint64_t index) const { return batches_[index % kBatches]; }
  void end_batch();

  const rte_net_vnic_copy_engine* engine_ = nullptr;
  void* lane_ = nullptr;  ///< null: closed
  bool refused_ = false;
  bool failed_ = false;
  bool noted_ = false;           ///< there is something in the batch that is put together
  std::uint32_t copies_ = 0;     ///< in it
  std::uint64_t begin_ = 0;      ///< batches, free-running
  std::uint64_t end_ = 0;        ///< the one that is put together
  std::uint64_t submitted_ = 0;  ///< those with copies, as the engine counts
  std::uint64_t landed_ = 0;
  std::array<Batch, kBatches> batches_;
  std::array<rte_net_vnic_copy, kMostCopies> list_;
};

}  // namespace warpline::vnic
