// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "warpline/base/result.h"
#include "warpline/capture/capture.h"
#include "warpline/datapath/capture/path_taps.h"

namespace warpline::datapath {

/// PathCapture writes what paths drop and, if that is asked for, what they receive and send to files. The control
/// thread makes all calls.
class PathCapture {
 public:
  /// Opens the capture; from here on the lcores of the paths of `taps`, which is free and outlives it, take copies.
  /// Errors are those of capture::Capture::open() and PathTaps::attach().
  [[nodiscard]] static Result<std::unique_ptr<PathCapture>> open(const capture::CaptureSettings& settings,
                                                                 PathTaps& taps, std::string_view application);
  /// The same of a capture that is open already. Errors are those of PathTaps::attach().
  [[nodiscard]] static Result<std::unique_ptr<PathCapture>> attach(std::unique_ptr<capture::Capture> opened,
                                                                   bool watches, PathTaps& taps);
  PathCapture(const PathCapture&) = delete;
  PathCapture& operator=(const PathCapture&) = delete;
  ~PathCapture() { finish(); }

  /// Starts to write.
  void start() { capture_->start(); }
  /// Writes all that was captured. After the lcores have ended, and before ports are closed, or once they have left
  /// the taps. More than once does no more.
  void finish();

  [[nodiscard]] capture::CaptureTotals totals() const { return capture_->totals(); }

 private:
  PathCapture(PathTaps& taps, std::unique_ptr<capture::Capture> capture) : taps_(&taps), capture_(std::move(capture)) {}

  PathTaps* taps_;  ///< null after finish()
  std::unique_ptr<capture::Capture> capture_;
};

}  // namespace warpline::datapath
