// SPDX-License-Identifier: Apache-2.0
#include "warpline/port/station_address.h"

#include <cstdint>
#include <cstring>
#include <random>

#include "warpline/base/random.h"

namespace warpline::port {

MacAddress station_address(const Port& port) {
  MacAddress mac = port.mac();
  if (mac != MacAddress{}) return mac;
  std::uint64_t random = std::random_device{}();
  random = mix64(random << 16 | port.id());
  std::memcpy(mac.bytes.data(), &random, mac.bytes.size());
  mac.bytes[0] = 0x02;
  return mac;
}

}  // namespace warpline::port
