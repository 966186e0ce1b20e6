// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "warpline/inspect/pattern_set.h"
#include "warpline/inspect/sha256.h"
#include "warpline/stream/lanes/stream_reader.h"

/// What is known of a connection when its consumer is through with it.
struct StreamFindings {
  static constexpr std::uint32_t kPatterns = 8;

  warpline::inspect::Sha256 digest;       ///< of all bytes
  unsigned long long found[kPatterns]{};  ///< how often each pattern is in them
};

/// A consumer of all connections of a lane: digests of their bytes, and how often patterns are in them.
class StreamDigests {
 public:
  /// Takes all memory, for so many connections at once. On a GPU or on the host, by what the program is linked with.
  static warpline::Result<std::unique_ptr<StreamDigests>> create(const warpline::inspect::PatternSet& patterns,
                                                                 std::uint32_t connections);
  virtual ~StreamDigests() = default;

  /// Returns the CUDA ordinal of the GPU that it works on, where its lane has to be; -1: the host.
  [[nodiscard]] virtual int gpu() const = 0;
  /// Begins to read what is on the board. False if that is not possible.
  [[nodiscard]] virtual bool begin(const warpline::stream::StreamBoard& board) = 0;
  /// Ends; waits for that.
  virtual void end() = 0;
  /// Returns what became of the connection in that place, once its event says that it was consumed, until it is closed.
  [[nodiscard]] virtual const StreamFindings& of(std::uint32_t place) const = 0;
};
