// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "vnic/sources/supply_rate.h"
#include "warpline/base/address.h"

namespace warpline::vnic {

struct Devargs;

/// What wire=source receives: UDP frames of `flows` flows in turn, each with an address of its own out of
/// 198.18.0.0/15, which is for benchmarks (RFC 2544, appendix C.2.2), or the frames of a capture file over and over.
/// The n-th frame is the same in every run. Owner: the holder of the egress lock.
class Source {
 public:
  struct Frame {
    std::uint8_t* bytes;  ///< until the next call of next(), for the caller to write to
    std::uint32_t length;
    std::uint64_t nanos;  ///< device time at which it arrives
  };

  static constexpr std::uint64_t kMaxPcapBytes = 1 << 28;
  /// With a rate, a source that is asked too rarely skips what is more frames late than this.
  static constexpr std::uint64_t kMaxBacklog = 1024;

  /// Null, with one line in `problem` and a negative errno in `status`: ENOENT and what else opening the file gives,
  /// EINVAL for a file that is no capture of Ethernet, is broken or empty, or for a size, rate or number of flows that
  /// cannot be, E2BIG for more than kMaxPcapBytes, ENOTSUP where there is no libpcap.
  [[nodiscard]] static std::unique_ptr<Source> open(const Devargs& args, int& status, std::string& problem);

  /// Made frames are for that address; they are for all before.
  void address_to(const MacAddress& destination);
  /// The schedule begins: the first frame arrives now.
  void start(std::uint64_t now_nanos);
  /// The next frame that has arrived by now; false when there is none.
  bool next(std::uint64_t now_nanos, Frame& frame);

 private:
  struct Place {
    std::uint64_t begin;
    std::uint32_t length;
  };

  Source() = default;
  int make_frame(const Devargs& args, std::string& problem);
  int read_pcap(const std::string& path, std::string& problem);
  /// Makes handed_ a frame of that flow.
  void become(std::uint32_t flow);

  SupplyRate rate_;
  std::uint64_t start_nanos_ = 0;
  std::uint64_t scheduled_ = 0;  ///< frames since start_nanos_, made or skipped

  std::uint32_t flows_ = 0;           ///< 0: replays
  std::size_t next_ = 0;              ///< flow, or place
  std::vector<std::uint8_t> bytes_;   ///< the frame of flow 0, or all of the file's
  std::vector<Place> places_;         ///< of the file's frames in it
  std::vector<std::uint8_t> handed_;  ///< the copy that next() gives
};

}  // namespace warpline::vnic
