// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream/payload/host_payload.h"

#include <algorithm>
#include <cstring>

#include "warpline/packet/checksum.h"

namespace warpline::stream {

void make_payload(const SeededPayload& payload, const MakeOrder& order) {
  constexpr std::uint64_t kAtATime = 1 << 20;
  for (std::uint64_t made = 0; made < order.length;) {
    const std::uint64_t here = std::min(order.length - made, kAtATime);
    packet::ChecksumSum unused;
    payload.copy(order.stream, order.offset + made, static_cast<std::uint32_t>(here), order.to + made, unused);
    made += here;
  }
}

void fill_payload(const FillOrder& order) {
  packet::ChecksumSum sum;
  sum.add_copied(order.to, order.from, order.length);
  const std::uint16_t payload = __builtin_bswap16(static_cast<std::uint16_t>(~sum.checksum()));
  const std::uint16_t checksum = completed_checksum(order.sum, payload);
  std::memcpy(order.checksum, &checksum, sizeof(checksum));
}

}  // namespace warpline::stream
