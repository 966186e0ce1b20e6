// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "warpline/base/result.h"
#include "warpline/capture/attached/attached_rings.h"
#include "warpline/capture/capture_settings.h"
#include "warpline/capture/capture_totals.h"
#include "warpline/capture/capture_writer.h"

namespace warpline::capture {

/// An AttachedCapture writes packets of another process to files of this one. One thread.
class AttachedCapture {
 public:
  /// Attaches to the process that listens at `socket`. Errors are those of PacketFilter::compile(),
  /// AttachedRings::attach() and CaptureFiles::open().
  [[nodiscard]] static Result<std::unique_ptr<AttachedCapture>> open(const std::string& socket,
                                                                     const CaptureSettings& settings,
                                                                     std::string_view application);

  /// Writes up to `most` packets that wait. Returns how many it took.
  std::size_t write_some(std::size_t most) { return writer_.write_some(most); }
  /// Packets that were written.
  [[nodiscard]] std::uint64_t written() const { return writer_.written(); }

  void stop() const { rings_.stop(); }                   ///< see AttachedRings
  [[nodiscard]] bool ended() { return rings_.ended(); }  ///< see AttachedRings
  void wait() const { rings_.wait(); }                   ///< see AttachedRings

  /// Returns what was captured; after ended(). Peer error: the process was gone before it could say what it left out.
  [[nodiscard]] Result<CaptureTotals> totals() const;

 private:
  AttachedCapture(AttachedRings rings, CaptureWriter writer) : rings_(std::move(rings)), writer_(std::move(writer)) {
    writer_.take_from(rings_.rings());
  }

  AttachedRings rings_;
  CaptureWriter writer_;
};

}  // namespace warpline::capture
