// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "warpline/base/result.h"
#include "warpline/capture/attached/attach_socket.h"
#include "warpline/capture/capture_sources.h"
#include "warpline/datapath/capture/path_taps.h"

namespace warpline::datapath {

/// A CaptureDoor lets other processes of this user capture packets of a run, one at a time: capture::AttachedCapture is
/// what they come with. They get copies in memory that both see, and write these themselves, so the run needs neither
/// files nor a thread for it, and one that does not keep up, stops or is killed costs the run nothing. Control thread.
class CaptureDoor {
 public:
  /// Listens at `path`. `taps` outlives it. Errors are those of AttachSocket::listen().
  [[nodiscard]] static Result<std::unique_ptr<CaptureDoor>> open(const std::string& path, PathTaps& taps);

  /// Lets in who has come, and goes on with who is there. To be called again and again; never waits.
  void poll();
  /// Ends what is captured: after the lcores have ended, and before ports are closed.
  void end();

 private:
  CaptureDoor(capture::AttachSocket listener, PathTaps& taps) : listener_(std::move(listener)), taps_(taps) {}

  using Clock = std::chrono::steady_clock;
  /// Somebody who has not said yet what to capture.
  struct Visitor {
    capture::AttachSocket socket;
    Clock::time_point since;
  };
  /// Somebody whose capture goes on.
  struct Guest {
    capture::AttachSocket socket;
    capture::CaptureSources sources;
    bool leaves = false;
  };

  void look_at_guest();
  void look_at_visitor();
  void answer(capture::AttachSocket socket, const capture::AttachBytes& bytes);
  [[nodiscard]] const char* reason_to_refuse(const std::optional<capture::AttachRequest>& request);
  void let_in(const capture::AttachRequest& request);
  void say_farewell();

  capture::AttachSocket listener_;
  PathTaps& taps_;
  std::optional<Visitor> visitor_;
  std::unique_ptr<Guest> guest_;
};

}  // namespace warpline::datapath
