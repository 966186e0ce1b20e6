// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "warpline/ingest/frames/frame_consumer.h"

/// Adds up the bytes of every packet that arrived in a frame, where the frame lies: by a kernel of its own on the
/// frame's stream, or on the host.
class FrameSums final : public warpline::ingest::FrameConsumer {
 public:
  static constexpr unsigned kPackets = 16;        ///< of a frame
  static constexpr unsigned kPacketBytes = 1024;  ///< payload

  /// With `on_gpu` on GPU 0, which there is. Without memory for the sum the first frame is refused.
  explicit FrameSums(bool on_gpu);
  FrameSums(const FrameSums&) = delete;
  FrameSums& operator=(const FrameSums&) = delete;
  ~FrameSums() override;

  bool consume(const warpline::ingest::ReadyFrame& ready) override;
  /// Waits for the kernels and returns the sum; nothing if one failed.
  [[nodiscard]] std::optional<unsigned long long> sum() const;

 private:
  unsigned long long host_sum_ = 0;
  unsigned long long* gpu_sum_ = nullptr;  ///< in GPU memory
};
