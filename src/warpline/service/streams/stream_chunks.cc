// SPDX-License-Identifier: Apache-2.0
#include "warpline/service/streams/stream_chunks.h"

namespace warpline::service {

std::uint64_t StreamChunks::reach(std::uint32_t connection, std::uint64_t end, bool ended, Nanos now) {
  if (bytes_ == 0) return end;
  Latest& latest = latest_[connection];
  if (end > latest.end) {
    if (latest.end % bytes_ == 0) latest.began = now;
    if (const std::uint64_t whole = end / bytes_ - latest.end / bytes_; whole != 0) {
      times_.record(static_cast<std::uint64_t>(now.value - latest.began.value));
      if (whole > 1) times_.record(0, whole - 1);
      latest.began = now;
    }
    latest.end = end;
  }
  return ended || finished_ ? end : end - end % bytes_;
}

}  // namespace warpline::service
