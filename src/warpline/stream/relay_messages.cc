// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream/relay_messages.h"

#include <algorithm>
#include <variant>

#include "warpline/packet/byte_order.h"

namespace warpline::stream {
namespace {

constexpr std::array<std::uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr std::size_t kAddressBytes = 18;  ///< with its port

void store(const SocketAddress& address, std::uint8_t* out) {
  if (const auto* const v4 = std::get_if<Ipv4Address>(&address.address)) {
    std::ranges::copy(v4->bytes, std::ranges::copy(kMapped, out).out);
  } else {
    std::ranges::copy(std::get<Ipv6Address>(address.address).bytes, out);
  }
  packet::store_be16(out + 16, address.port);
}

SocketAddress load(const std::uint8_t* in) {
  SocketAddress address;
  if (std::equal(kMapped.begin(), kMapped.end(), in)) {
    Ipv4Address v4;
    std::copy_n(in + 12, 4, v4.bytes.begin());
    address.address = v4;
  } else {
    Ipv6Address v6;
    std::copy_n(in, 16, v6.bytes.begin());
    address.address = v6;
  }
  address.port = packet::load_be16(in + 16);
  return address;
}

}  // namespace

std::array<std::uint8_t, RelayedBegin::kBytes> encode(const RelayedBegin& begin) {
  std::array<std::uint8_t, RelayedBegin::kBytes> message;
  store(begin.peer, message.data());
  store(begin.local, message.data() + kAddressBytes);
  return message;
}

std::array<std::uint8_t, RelayedEnd::kBytes> encode(const RelayedEnd& end) {
  std::array<std::uint8_t, RelayedEnd::kBytes> message;
  message[0] = static_cast<std::uint8_t>(end.state);
  packet::store_be32(message.data() + 1, static_cast<std::uint32_t>(end.bytes >> 32));
  packet::store_be32(message.data() + 5, static_cast<std::uint32_t>(end.bytes));
  return message;
}

std::optional<RelayedBegin> decode_begin(std::span<const std::uint8_t> message) {
  if (message.size() != RelayedBegin::kBytes) return {};
  return RelayedBegin{load(message.data()), load(message.data() + kAddressBytes)};
}

std::optional<RelayedEnd> decode_end(std::span<const std::uint8_t> message) {
  if (message.size() != RelayedEnd::kBytes) return {};
  if (message[0] == static_cast<std::uint8_t>(ConnectionState::open) ||
      message[0] > static_cast<std::uint8_t>(ConnectionState::timed_out)) {
    return {};
  }
  const std::uint64_t bytes =
      std::uint64_t{packet::load_be32(message.data() + 1)} << 32 | packet::load_be32(message.data() + 5);
  return RelayedEnd{static_cast<ConnectionState>(message[0]), bytes};
}

}  // namespace warpline::stream
