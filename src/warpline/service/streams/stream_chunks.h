// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "warpline/base/statistics/histogram.h"
#include "warpline/base/units.h"

namespace warpline::service {

/// Holds the bytes of connections back until there is a chunk of them: `stream receive --chunk`. Chunks are counted
/// from a stream's beginning; its last one may be shorter. One thread; times are read by any.
class StreamChunks {
 public:
  /// Chunks of so many bytes, which the rings of so many connections have room for; 0: bytes are handed on as they
  /// come.
  StreamChunks(std::uint32_t connections, std::uint64_t bytes) : bytes_(bytes), latest_(bytes == 0 ? 0 : connections) {}

  /// A connection begins.
  void begin(std::uint32_t connection) {
    if (bytes_ != 0) latest_[connection] = {};
  }
  /// Enters that so many bytes of a connection's stream have come, or the last of them if it `ended`. Returns how many
  /// of them, from the first on, are handed on.
  [[nodiscard]] std::uint64_t reach(std::uint32_t connection, std::uint64_t end, bool ended, Nanos now);
  /// Nothing more comes: what there is is handed on.
  void finish() { finished_ = true; }
  [[nodiscard]] bool finished() const { return finished_; }

  /// Nanoseconds from when the first byte of a chunk was seen until its last one was.
  [[nodiscard]] const Histogram& times() const { return times_; }

 private:
  struct Latest {
    std::uint64_t end = 0;  ///< bytes that had come
    Nanos began{};          ///< when the first byte of the chunk was seen that is not whole
  };

  std::uint64_t bytes_;
  bool finished_ = false;
  std::vector<Latest> latest_;  ///< by connection
  Histogram times_;
};

}  // namespace warpline::service
