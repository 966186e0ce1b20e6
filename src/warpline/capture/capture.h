// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/capture/capture_settings.h"
#include "warpline/capture/capture_sources.h"
#include "warpline/capture/capture_totals.h"
#include "warpline/capture/capture_writer.h"

namespace warpline::capture {

/// A Capture writes what its sources take to files, on a thread of its own. Sources whose packets come faster than they
/// are written leave some out and count them; they never wait. The control thread makes all calls.
class Capture {
 public:
  /// Makes the first file and `sources` sources. `application` is what the files say wrote them. Errors are those of
  /// PacketFilter::compile(), CaptureSources::make() and CaptureFiles::open().
  [[nodiscard]] static Result<std::unique_ptr<Capture>> open(const CaptureSettings& settings,
                                                             const std::vector<CaptureInterface>& interfaces,
                                                             std::uint32_t sources, std::string_view application);
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  ~Capture() { finish(); }

  [[nodiscard]] std::span<const std::unique_ptr<CaptureSource>> sources() const { return sources_.all(); }

  /// Starts to write.
  void start();
  /// Writes what sources have taken, and ends the thread. After the last packet that a source takes; more than once
  /// does no more.
  void finish();

  /// Returns what was counted so far; with `failure` after finish().
  [[nodiscard]] CaptureTotals totals() const { return writer_.totals(sources_.totals(), !thread_.joinable()); }

 private:
  Capture(CaptureSources sources, CaptureWriter writer) : sources_(std::move(sources)), writer_(std::move(writer)) {
    writer_.take_from(sources_.rings());
  }
  void run();

  CaptureSources sources_;
  CaptureWriter writer_;
  std::atomic<bool> ends_soon_{false};
  std::thread thread_;
};

}  // namespace warpline::capture
