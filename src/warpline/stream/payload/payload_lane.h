// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "warpline/base/result.h"
#include "warpline/stream/payload/payload_orders.h"

namespace warpline::stream {

/// The connections of a sender whose payload a PayloadLane has.
struct PayloadShape {
  std::uint32_t connections = 64;      ///< rings
  std::uint64_t ring_bytes = 8 << 20;  ///< of each: a power of two, of whole pages of the memory that they are in
};

/// Puts payload into frames beside the thread that sends them: a thread of the host, or a GPU. It has a ring of memory
/// for the bytes of each connection, makes bytes there, and copies segments out of it into frames, with their share of
/// the TCP checksum. Batches are carried out one after the other, what a batch makes before what it fills: an order may
/// rely on those before it, and may overwrite what they read. One thread makes all calls; only stop() waits.
class PayloadLane {
 public:
  static constexpr std::uint32_t kSlots = 8;   ///< batches that may be under way
  static constexpr std::uint32_t kFills = 64;  ///< of a batch, at most

  PayloadLane() = default;
  PayloadLane(const PayloadLane&) = delete;
  PayloadLane& operator=(const PayloadLane&) = delete;
  virtual ~PayloadLane() = default;

  [[nodiscard]] virtual const PayloadShape& shape() const = 0;
  /// Returns the first of `2 * ring_bytes` bytes of that connection's ring: byte k and byte k + `ring_bytes` are the
  /// same. The CPU may not reach them.
  [[nodiscard]] virtual std::uint8_t* ring(std::uint32_t connection) const = 0;

  /// Takes a batch: orders of makes, as many as connections at most and of a ring's length each at most, and up to
  /// kFills of fills, whose frames stay as they are until it has landed. False, and nothing taken: no slot is free.
  [[nodiscard]] virtual bool submit(std::span<const MakeOrder> makes, std::span<const FillOrder> fills) = 0;
  /// Returns how many batches have been carried out: what they wrote is there, for the CPU and for devices.
  [[nodiscard]] virtual std::uint64_t landed() = 0;
  /// Returns why no batch lands any more, if so.
  [[nodiscard]] virtual std::optional<Error> failure() const = 0;
  /// Ends it, with what it has been given, or as soon as may be. Nothing is written to frames afterwards.
  virtual void stop() = 0;
};

}  // namespace warpline::stream
