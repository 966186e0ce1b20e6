// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/capture/attached/attach_messages.h"
#include "warpline/capture/attached/attach_socket.h"
#include "warpline/capture/capture_totals.h"
#include "warpline/capture/rings/capture_rings.h"

namespace warpline::capture {

/// AttachedRings are rings that another process puts copies in, without waiting for this one. It ends when either does.
/// One thread.
class AttachedRings {
 public:
  /// Attaches to the process that listens at `socket`, and asks it for this. Environment error: there is no such
  /// process, or it refuses. Peer error: it is of another version, or does not answer.
  [[nodiscard]] static Result<AttachedRings> attach(const std::string& socket, const AttachRequest& request);

  [[nodiscard]] const CaptureRings& rings() const { return rings_; }
  [[nodiscard]] const std::vector<CaptureInterface>& interfaces() const { return interfaces_; }

  /// Tells the process to copy nothing more.
  void stop() const { socket_.end_sending(); }
  /// Returns true once the process copies nothing more; what it has copied may still be in the rings.
  [[nodiscard]] bool ended();
  /// Waits a moment for packets, or for the end.
  void wait() const { socket_.wait(1); }

  /// Returns what was not put in the rings; after ended(). Nothing: the process was gone before it could say.
  [[nodiscard]] const std::optional<SourceTotals>& left_out() const { return left_out_; }

 private:
  AttachedRings(AttachSocket socket, CaptureRings rings, std::vector<CaptureInterface> interfaces)
      : socket_(std::move(socket)), rings_(std::move(rings)), interfaces_(std::move(interfaces)) {}

  AttachSocket socket_;
  CaptureRings rings_;
  std::vector<CaptureInterface> interfaces_;
  bool ended_ = false;
  std::optional<SourceTotals> left_out_;
};

}  // namespace warpline::capture
