// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nccl/connection.h"
#include "nccl/wire.h"

namespace warpline::nccl {

class ReceivePath;

/// The end that receives. Each group of receives is told to the sender; what it sends for it is put where NCCL wants it
/// by the lanes that it comes by.
class ReceiveConnection final : public Connection {
 public:
  /// One path on each of `lanes`; `piece_bytes` as the sender said. Transfers of up to `early_bytes` may come before
  /// their receives are posted.
  ReceiveConnection(std::string peer, std::vector<std::shared_ptr<void>> keeps, std::span<Lane* const> lanes,
                    std::uint32_t piece_bytes, std::size_t home, std::uint32_t early_bytes);
  ~ReceiveConnection() override;

  /// Posts a group of `count` receives. `request` null: not now, ask again.
  template <typename Size>
  Status receive(int count, void* const* data, const Size* sizes, const int* tags, Request** request);
  Status test(Request& request, int* done, int* sizes) override;

 protected:
  [[nodiscard]] bool uses(const std::uint8_t* from, const std::uint8_t* to) const override;

 private:
  friend class ReceivePath;

  /// One receive of a group.
  struct Member {
    std::uint8_t* data = nullptr;
    std::uint32_t room = 0;
    int tag = 0;
    std::uint32_t stride = 0;
    std::atomic<std::int64_t> balance{0};  ///< 0: all is there
    std::uint32_t bytes = 0;               ///< of the transfer; by whose piece was the last
  };
  struct Group : Request {
    enum State : std::uint32_t { free, posted, done };
    std::atomic<std::uint32_t> state{free};
    std::uint32_t count = 0;
    std::atomic<std::uint32_t> left{0};  ///< members that are not whole
    std::array<Member, kMaxGroup> members;
  };

  Member* member_of(const PieceName& name, std::uint32_t length);
  void arrived(const PieceName& name, std::uint32_t length);

  [[nodiscard]] std::uint8_t* early_room(std::uint32_t sequence) {
    return early_.get() + std::size_t{sequence % kMaxEarly} * early_bytes_;
  }

  std::uint32_t piece_bytes_;
  std::uint32_t early_bytes_;
  std::unique_ptr<std::uint8_t[]> early_;  ///< kMaxEarly transfers, each at its sequence; the home path's
  std::array<Group, kMaxRequests> groups_;
  std::uint32_t next_ = 0;  ///< sequence of the next group
};

}  // namespace warpline::nccl
