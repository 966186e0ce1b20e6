// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nccl/connection.h"
#include "nccl/settings.h"
#include "nccl/wire.h"

namespace warpline::nccl {

class SendPath;

/// The end that sends. A transfer goes when the receiver has said where it has room for its tag; long ones in pieces,
/// by several paths at once.
class SendConnection final : public Connection {
 public:
  /// One path on each of `lanes`.
  SendConnection(std::string peer, std::vector<std::shared_ptr<void>> keeps, std::span<Lane* const> lanes,
                 std::uint32_t piece_bytes, std::size_t home);
  ~SendConnection() override;

  /// Begins a transfer; a short one if need be before there is room told for it. `request` null: not now, ask again.
  Status send(const void* data, std::size_t bytes, int tag, Request** request);
  Status test(Request& request, int* done, int* sizes) override;

 protected:
  [[nodiscard]] bool uses(const std::uint8_t* from, const std::uint8_t* to) const override;

 private:
  friend class SendPath;
  static constexpr std::uint32_t kRequests = kMaxRequests * kMaxGroup;

  struct Sending : Request {
    std::atomic<std::uint32_t> left{0};  ///< pieces that the receiver does not have
    const std::uint8_t* data = nullptr;
    std::uint32_t bytes = 0;
    bool used = false;
  };
  /// A group of receives, at its sequence modulo kMaxRequests.
  struct Group {
    std::atomic<std::uint64_t> number{0};  ///< its sequence and one more; written last
    Posted posted;
    /// What is known of a transfer that went early.
    std::uint32_t early_bytes = 0;
    int early_tag = 0;
  };

  /// A group was posted; by the lane of the home path.
  void take_posted(const Posted& posted);
  void complete_piece(std::uint32_t request);
  [[nodiscard]] bool may_go_early(std::uint64_t served, std::size_t bytes) const;
  Status send_early(const void* data, std::size_t bytes, int tag, Request** request);
  /// A request that is free; null: none is.
  Sending* take_request();
  [[nodiscard]] std::size_t least_loaded() const;

  std::uint32_t piece_bytes_;
  std::atomic<std::uint32_t> early_bytes_{0};  ///< that a transfer may have to go early, as the receiver says
  std::array<Group, kMaxRequests> groups_;
  alignas(64) std::atomic<std::uint64_t> served_{0};  ///< groups all of whose transfers have begun
  std::uint32_t members_served_ = 0;                  ///< bits: of the group after those
  std::uint32_t next_free_ = 0;
  std::vector<Sending> requests_;
};

}  // namespace warpline::nccl
