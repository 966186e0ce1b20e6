// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/frame.h"
#include "packet/udp_frame.h"

namespace warpline {

using Octets = std::vector<std::uint8_t>;

/// A frame in segments that end at the given lengths, each in an allocation of exactly its size: an address sanitizer
/// sees every byte read past one.
class CutFrame {
 public:
  CutFrame(const Octets& bytes, const std::vector<std::uint32_t>& lengths) {
    std::size_t offset = 0;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      auto piece = std::make_unique<std::uint8_t[]>(lengths[i]);
      std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), lengths[i], piece.get());
      segments_.push_back(
          {piece.get(), lengths[i], static_cast<std::uint16_t>(lengths.size() - 1 - i), Verdict::forward});
      pieces_.push_back(std::move(piece));
      offset += lengths[i];
    }
  }
  explicit CutFrame(const Octets& bytes) : CutFrame(bytes, {static_cast<std::uint32_t>(bytes.size())}) {}

  FrameRef frame() { return frame_at(segments_.data()); }
  [[nodiscard]] Octets bytes() const {
    Octets all;
    for (const Segment& segment : segments_) all.insert(all.end(), segment.data, segment.data + segment.length);
    return all;
  }

 private:
  std::vector<std::unique_ptr<std::uint8_t[]>> pieces_;
  std::vector<Segment> segments_;
};

/// Ethernet, IP and UDP with right checksums, and a payload of so many bytes.
inline Octets udp_frame(std::uint32_t payload, bool ipv6 = false) {
  UdpFrame header{MacAddress{{2, 0, 0, 0, 0, 2}},
                  MacAddress{{2, 0, 0, 0, 0, 1}},
                  Ipv4Address{{198, 18, 0, 1}},
                  Ipv4Address{{198, 19, 0, 1}},
                  1000,
                  2000};
  if (ipv6) {
    header.source = Ipv6Address{{0xfd, 0, 1}};
    header.destination = Ipv6Address{{0xfd, 0, 2}};
  }
  Octets bytes(udp_headers_length(header) + payload);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 37);
  return emit(header, bytes) != 0 ? bytes : Octets{};
}

template <typename Work>
Verdict judge(Work&& work, const Octets& bytes) {
  CutFrame cut(bytes);
  return work(cut.frame());
}

inline Octets with(Octets bytes, std::size_t offset, std::uint8_t value) {
  bytes[offset] = value;
  return bytes;
}

/// The frame behind so many VLAN tags more.
inline Octets tagged(Octets bytes, unsigned tags) {
  for (unsigned i = 0; i < tags; ++i) bytes.insert(bytes.begin() + 12, {0x81, 0x00, 0x00, 0x07});
  return bytes;
}

}  // namespace warpline
