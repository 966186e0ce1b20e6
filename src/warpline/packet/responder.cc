// SPDX-License-Identifier: Apache-2.0
#include "warpline/packet/responder.h"

namespace warpline::packet {

Responder::Responder(const MacAddress& mac, const InterfaceAddress& address)
    : v4_(std::holds_alternative<Ipv4Address>(address.address)) {
  store_address(mac_, mac);
  if (v4_) {
    store_address(ip_, std::get<Ipv4Address>(address.address));
  } else {
    store_address(ip_, std::get<Ipv6Address>(address.address));
  }
}

}  // namespace warpline::packet
