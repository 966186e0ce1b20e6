// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "warpline/base/result.h"
#include "warpline/capture/attached/attach_socket.h"
#include "warpline/capture/capture_settings.h"
#include "warpline/capture/capture_totals.h"
#include "warpline/capture/capture_writer.h"
#include "warpline/capture/rings/capture_rings.h"

namespace warpline::capture {

/// An AttachedCapture writes packets of another process to files of this one: that process copies them into rings in
/// memory that both see, and waits for nothing. It ends when either does. One thread.
class AttachedCapture {
 public:
  /// Attaches to the process that listens at `socket`. Usage error: the filter is wrong, or the file is. Environment
  /// error: there is no such process, it refuses, or the file cannot be written. Peer error: it is of another version,
  /// or does not answer.
  [[nodiscard]] static Result<std::unique_ptr<AttachedCapture>> open(const std::string& socket,
                                                                     const CaptureSettings& settings,
                                                                     std::string_view application);

  /// Writes up to `most` packets that wait. Returns how many it took.
  std::size_t write_some(std::size_t most) { return writer_.write_some(most); }
  /// Packets that were written.
  [[nodiscard]] std::uint64_t written() const { return writer_.written(); }

  /// Tells the process to copy nothing more.
  void stop() const { socket_.end_sending(); }
  /// Returns true once the process copies nothing more; what it has copied may still wait to be written.
  [[nodiscard]] bool ended();
  /// Waits a moment for packets, or for the end.
  void wait() const { socket_.wait(1); }

  /// Returns what was captured; after ended(). Peer error: the process was gone before it could say what it left out.
  [[nodiscard]] Result<CaptureTotals> totals() const;

 private:
  AttachedCapture(AttachSocket socket, CaptureRings rings, CaptureWriter writer)
      : socket_(std::move(socket)), rings_(std::move(rings)), writer_(std::move(writer)) {
    writer_.take_from(rings_);
  }

  AttachSocket socket_;
  CaptureRings rings_;
  CaptureWriter writer_;
  bool ended_ = false;
  std::optional<SourceTotals> left_out_;
};

}  // namespace warpline::capture
