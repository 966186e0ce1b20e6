// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "warpline/inspect/pattern_set.h"
#include "warpline/inspect/sha256.h"
#include "warpline/stream/lanes/stream_board.h"

namespace warpline::bench {

/// Streams as consumers of a lane find them: in rings in a GPU's memory, by a board whose words of what is released are
/// in pinned memory. The lane is left out: what it would have written lies there.
class BoardConsumers {
 public:
  /// Rings of `length` bytes, a power of two, for `most` streams: the text's, one behind the other. Ends the program
  /// where there is no room.
  BoardConsumers(const std::vector<std::uint8_t>& text, std::uint32_t most, std::uint64_t length);
  BoardConsumers(const BoardConsumers&) = delete;
  BoardConsumers& operator=(const BoardConsumers&) = delete;
  ~BoardConsumers();

  /// A ring's bytes more have come of each of the first `streams`. Waits until the GPU knows.
  void commit(std::uint32_t streams);
  /// Kernels in which each of these is looked up, its bytes digested or searched, and released; then the host takes in
  /// what was released. False if that is not all.
  [[nodiscard]] bool digest(std::uint32_t streams, inspect::Sha256* digests);
  [[nodiscard]] bool search(std::uint32_t streams, const inspect::PatternTable& table, std::uint16_t* states,
                            unsigned long long* found, unsigned ctas);

 private:
  [[nodiscard]] bool take_releases(std::uint32_t streams);

  stream::StreamBoard board_;
  std::vector<std::uint64_t> committed_;  ///< of each
  std::uint8_t* rings_ = nullptr;
  std::uint64_t* words_ = nullptr;  ///< pinned
};

}  // namespace warpline::bench
