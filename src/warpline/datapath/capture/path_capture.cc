// SPDX-License-Identifier: Apache-2.0
#include "warpline/datapath/capture/path_capture.h"

namespace warpline::datapath {

Result<std::unique_ptr<PathCapture>> PathCapture::open(const capture::CaptureSettings& settings, PathTaps& taps,
                                                       std::string_view application) {
  const bool watches = !settings.what.dropped_only;
  WARPLINE_TRY(auto opened, capture::Capture::open(settings, taps.interfaces(), taps.sources(watches), application));
  return attach(std::move(opened), watches, taps);
}

Result<std::unique_ptr<PathCapture>> PathCapture::attach(std::unique_ptr<capture::Capture> opened, bool watches,
                                                         PathTaps& taps) {
  std::unique_ptr<PathCapture> capture(new PathCapture(taps, std::move(opened)));
  WARPLINE_CHECK(taps.attach(capture->capture_->sources(), watches));
  return capture;
}

void PathCapture::finish() {
  if (PathTaps* const taps = std::exchange(taps_, nullptr)) taps->end();
  capture_->finish();
}

}  // namespace warpline::datapath
