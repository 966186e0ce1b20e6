// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests of what faults do to frames; the driver itself includes none of this.

#include <cstdint>
#include <vector>

#include "vnic/faults/faults.h"
#include "warpline/base/random.h"

namespace warpline::vnic {

/// Keeps all that is delivered.
class RecordingSink final : public FrameSink {
 public:
  struct Delivery {
    std::vector<std::uint8_t> bytes;
    std::uint64_t release_nanos;
    bool operator==(const Delivery&) const = default;
  };
  void deliver(const std::uint8_t* frame, std::uint32_t length, std::uint64_t release_nanos) override {
    deliveries.push_back({{frame, frame + length}, release_nanos});
  }
  std::vector<Delivery> deliveries;
};

/// `length` bytes that tell the frame's number in the first four, and are random behind.
[[nodiscard]] inline std::vector<std::uint8_t> frame_of_number(std::uint32_t number, std::size_t length) {
  std::vector<std::uint8_t> bytes(length);
  Random random(number);
  for (std::size_t i = 0; i < length; ++i) {
    bytes[i] = static_cast<std::uint8_t>(i < 4 ? number >> (8 * i) : random.next());
  }
  return bytes;
}

[[nodiscard]] inline std::uint32_t number_of(const std::vector<std::uint8_t>& bytes) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < 4 && i < bytes.size(); ++i) number |= std::uint32_t{bytes[i]} << (8 * i);
  return number;
}

/// A wire with faults, and what came out of it.
struct Wire {
  explicit Wire(const FaultConfig& config, std::uint64_t seed = 1) : faults(config, seed) {}

  void send(std::vector<std::uint8_t> frame, std::uint64_t now_nanos = 0) {
    faults.pass(frame.data(), static_cast<std::uint32_t>(frame.size()), now_nanos, sink, counts);
    ++sent;
  }
  void send_numbered(std::uint32_t frames, std::size_t length = 64, std::uint64_t interval_nanos = 0) {
    for (std::uint32_t i = 0; i < frames; ++i) send(frame_of_number(i, length), i * interval_nanos);
  }
  /// The numbers of the delivered frames, in their order.
  [[nodiscard]] std::vector<std::uint32_t> numbers() const {
    std::vector<std::uint32_t> all;
    all.reserve(sink.deliveries.size());
    for (const RecordingSink::Delivery& delivery : sink.deliveries) all.push_back(number_of(delivery.bytes));
    return all;
  }
  [[nodiscard]] bool conserves() const {
    return sent + counts.get(Count::fault_duplicate) ==
           sink.deliveries.size() + counts.get(Count::fault_loss) + counts.get(Count::fault_reset) +
               counts.get(Count::fault_flap) + counts.get(Count::tx_queue_full) + faults.held();
  }

  Faults faults;
  RecordingSink sink;
  Counters counts;
  std::uint64_t sent = 0;
};

}  // namespace warpline::vnic
