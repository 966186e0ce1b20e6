// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/base/statistics/counter.h"
#include "warpline/capture/capture_files.h"
#include "warpline/capture/capture_settings.h"
#include "warpline/capture/capture_source.h"
#include "warpline/capture/capture_totals.h"
#include "warpline/capture/packet_filter.h"

namespace warpline::capture {

/// An interface of a capture: a port.
struct CaptureInterface {
  std::uint16_t port;  ///< of the ethdev, as packets name it
  std::string name;
};

/// A Capture writes what its sources take to files, on a thread of its own: a packet's interface, direction, queue and
/// time in nanoseconds, and why it was dropped as its comment. Sources whose packets come faster than they are written
/// leave some out and count them; they never wait. The control thread makes all calls.
class Capture {
 public:
  /// Makes the first file and `sources` sources. `application` is what the files say wrote them. Errors are those of
  /// PacketFilter::compile() and CaptureFiles::open().
  [[nodiscard]] static Result<std::unique_ptr<Capture>> open(const CaptureSettings& settings,
                                                             const std::vector<CaptureInterface>& interfaces,
                                                             std::size_t sources, std::string_view application);
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  ~Capture() { finish(); }

  [[nodiscard]] CaptureSource& source(std::size_t index) { return *sources_[index]; }

  /// Starts to write.
  void start();
  /// Writes what sources have taken, and ends the thread. After the last packet that a source takes; more than once
  /// does no more.
  void finish();

  /// Returns what was counted so far; with `failure` after finish().
  [[nodiscard]] CaptureTotals totals() const;

 private:
  /// Converts ticks of the time-stamp counter to nanoseconds since 1970.
  class WallClock {
   public:
    /// Compares the two clocks anew if that is long ago: the counter's rate is not known for ever.
    void adjust();
    [[nodiscard]] std::uint64_t nanos_at(std::uint64_t ticks) const;

   private:
    std::uint64_t ticks_ = 0;
    std::int64_t nanos_ = 0;
  };

  Capture(CaptureFiles files, const std::vector<CaptureInterface>& interfaces);

  void run();
  /// Writes what lies in rings, up to a bound. Returns false if there was nothing.
  bool write_some();
  /// Returns the source whose next packet is the oldest; null: none has any.
  [[nodiscard]] CaptureSource* oldest();
  void add(const CapturedPacket& packet);
  void flush();

  CaptureFiles files_;
  std::vector<std::uint16_t> interface_of_port_;  ///< index of its block, by the ethdev's number
  std::vector<std::unique_ptr<CaptureSource>> sources_;
  WallClock clock_;

  // Blocks that are to be written next, and the packets that are in them.
  std::vector<std::uint8_t> blocks_;
  std::vector<std::size_t> ends_;
  struct Pending {
    Verdict verdict;
    std::uint32_t bytes;
  };
  std::vector<Pending> pending_;

  // Written by the thread, read by the control thread.
  DropCounters written_;
  DropCounters unwritten_;
  Counter bytes_;
  Counter overwritten_;
  std::atomic<bool> ends_soon_{false};
  std::thread thread_;
};

}  // namespace warpline::capture
