// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/base/statistics/counter.h"
#include "warpline/capture/capture_files.h"
#include "warpline/capture/capture_settings.h"
#include "warpline/capture/capture_totals.h"
#include "warpline/capture/rings/capture_rings.h"

namespace warpline::capture {

/// An interface of a capture: a port.
struct CaptureInterface {
  std::uint16_t port;  ///< of the ethdev, as packets name it
  std::string name;
  bool operator==(const CaptureInterface&) const = default;
};

/// A CaptureWriter writes what lies in rings to files: a packet's interface, direction, queue and time in nanoseconds,
/// and why it was dropped as its comment. One thread writes; counters may be read by any.
class CaptureWriter {
 public:
  /// Makes the first file. `application` is what the files say wrote them. Errors are those of CaptureFiles::open().
  [[nodiscard]] static Result<CaptureWriter> open(const CaptureSettings& settings,
                                                  const std::vector<CaptureInterface>& interfaces,
                                                  std::string_view application);

  /// Writes what lies in these rings from now on. They outlive it.
  void take_from(const CaptureRings& rings);
  /// Writes up to `most` packets, up to a bound, the oldest first. Returns how many it took out.
  std::size_t write_some(std::size_t most = SIZE_MAX);

  /// Returns what was written, and with it what the rings' sources counted. Names of files and the failure may be asked
  /// for (`ended`) when nothing is written any more.
  [[nodiscard]] CaptureTotals totals(const SourceTotals& sources, bool ended) const;
  [[nodiscard]] std::uint64_t written() const { return counts_->written.total(); }

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

  static constexpr std::uint16_t kNone = 0xffff;

  CaptureWriter(CaptureFiles files, const std::vector<CaptureInterface>& interfaces, std::uint32_t snaplen);

  /// Returns the ring whose next packet is the oldest; null: none has any.
  [[nodiscard]] CaptureRingOutput* oldest();
  /// Adds a packet to what is written next, unless its facts cannot be: a process that is attached to may be mistaken.
  void add(const CapturedPacket& in_ring);
  /// Returns the bytes of the filler that goes before a block of so many, so that neither it nor the next filler is in
  /// two pieces.
  [[nodiscard]] std::size_t filler_before(std::size_t size) const;
  void flush();

  CaptureFiles files_;
  std::vector<std::uint16_t> interface_of_port_;  ///< index of its block, by the ethdev's number; kNone: it has none
  std::uint32_t snaplen_;
  std::vector<CaptureRingOutput> rings_;
  WallClock clock_;

  // Blocks that are to be written next, and the packets that are in them.
  std::vector<std::uint8_t> blocks_;
  std::vector<std::size_t> ends_;
  struct Pending {
    Verdict verdict;
    std::uint32_t bytes;
  };
  std::vector<Pending> pending_;

  // The thread that writes counts here.
  struct Counts {
    DropCounters written;
    DropCounters unwritten;
    Counter bytes;
    Counter overwritten;
  };
  std::unique_ptr<Counts> counts_ = std::make_unique<Counts>();
};

}  // namespace warpline::capture
