// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "warpline/stream/seeded_payload.h"
#include "warpline/stream_port/run/send_worker.h"

namespace warpline::service {

/// Bytes that `stream receive --verify` knows: each connection's stream is numbered by its sender's port.
class SeededSource final : public stream_port::SendSource {
 public:
  /// For a sender of so many connections.
  SeededSource(std::uint64_t seed, std::uint32_t connections) : payload_(seed), ports_(connections) {}

  void begin(stream::ConnectionId connection, std::uint16_t port) override { ports_[connection.index] = port; }
  [[nodiscard]] const stream::SeededPayload& payload() const { return payload_; }  ///< of the streams, by their ports
  void read(stream::ConnectionId connection, std::uint64_t offset, std::uint32_t length, std::uint8_t* to,
            packet::ChecksumSum& sum) const override {
    payload_.copy(ports_[connection.index], offset, length, to, sum);
  }

 private:
  stream::SeededPayload payload_;
  std::vector<std::uint16_t> ports_;
};

}  // namespace warpline::service
