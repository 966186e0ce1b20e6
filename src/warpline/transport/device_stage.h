// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "warpline/base/piece_lane.h"
#include "warpline/message/config.h"
#include "warpline/transport/transport.h"

namespace warpline::transport {

/// What a DeviceStage had copied. One writer.
struct DeviceStageCounters {
  Counter placed;         ///< pieces of what arrived, into device memory
  Counter placed_bytes;   ///< bytes of these
  Counter fetched;        ///< payloads to be sent, out of device memory
  Counter fetched_bytes;  ///< bytes of these
};

/// Messages in memory that the CPU does not reach, through a transport that needs not reach it either. A lane copies:
/// payload that is sent from device memory behind its head, a burst at a time; what arrives from where it was received
/// to where it belongs, a burst at a time. The CPU looks at neither. The lane reaches the transport's own buffers.
///
/// While a burst's copies are under way room() is empty, and receive() too, and settled() is false; nothing waits.
class DeviceStage final : public Transport {
 public:
  /// Both outlive the stage. Heads have room for whole datagrams.
  DeviceStage(Transport& inner, PieceLane& lane);

  /// For EndpointConfig.
  [[nodiscard]] message::Placer placer() { return {this, place}; }
  /// Nothing is being copied or about to be. Until then memory that a BufferSource got back must not be given out
  /// again: what came for the message that had it may still be on its way there.
  [[nodiscard]] bool quiet() { return pieces_.empty() && lane_.landed() >= batches_; }

  std::span<const message::Datagram> receive(Nanos now) override;
  [[nodiscard]] bool more() const override { return held_up_ || inner_.more(); }
  void read() override;
  [[nodiscard]] bool settled() override;
  [[nodiscard]] bool failed() const override { return lane_.failure().has_value(); }
  std::span<message::Outgoing> room() override;
  void send(std::size_t count, Nanos now) override;
  std::span<const std::uint64_t> completed() override;
  void wait(Nanos now, Nanos until) override;
  void wake_by(int descriptor) override { inner_.wake_by(descriptor); }
  [[nodiscard]] int descriptor() const override { return inner_.descriptor(); }
  [[nodiscard]] bool blocked() const override { return inner_.blocked(); }
  /// What has landed since settled() was asked last is news that its caller has not seen: he must not sleep on it.
  [[nodiscard]] bool restless() override { return held_ != 0 || !seen_settled_ || inner_.restless(); }

  [[nodiscard]] const DeviceStageCounters& copies() const { return copies_; }  ///< any thread may read them
  /// Why nothing settles any more, if so.
  [[nodiscard]] std::optional<Error> failure() const { return lane_.failure(); }

 private:
  static void place(void* self, std::uint8_t* to, const std::uint8_t* from, std::uint32_t length);
  bool push();
  void release(Nanos now);
  void collect();

  Transport& inner_;
  PieceLane& lane_;
  DeviceStageCounters copies_;

  std::vector<Piece> pieces_;      ///< of bursts that are not all with the lane
  std::size_t pushed_ = 0;         ///< of pieces_
  std::uint64_t batches_ = 0;      ///< given to the lane
  std::uint64_t read_until_ = 0;   ///< batches of what arrived last
  std::uint64_t fetch_until_ = 0;  ///< batches of the burst that is held
  bool seen_settled_ = true;       ///< what settled() said last of what arrived
  bool held_up_ = false;           ///< the last receive() did not ask the inner transport
  std::size_t held_ = 0;           ///< datagrams of the inner transport's room() that wait for their payload
  std::span<message::Outgoing> room_;
  std::vector<std::uint64_t> fetched_;  ///< tokens of the burst that is held
  std::vector<std::uint64_t> tokens_;   ///< for the next completed()
  std::vector<std::uint64_t> given_;    ///< by the last one
};

}  // namespace warpline::transport
