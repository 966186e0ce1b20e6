// SPDX-License-Identifier: Apache-2.0
#include "warpline/packet/responder.h"

namespace warpline::packet {

Responder::Responder(const MacAddress& mac, const InterfaceAddress& address, const ResponderSettings& settings)
    : v4_(std::holds_alternative<Ipv4Address>(address.address)),
      router_(settings.router),
      queries_(settings.queries),
      reporter_(settings.reporter),
      watch_(settings.watch) {
  store_address(mac_, mac);
  if (v4_) {
    store_address(ip_, std::get<Ipv4Address>(address.address));
  } else {
    const auto& own = std::get<Ipv6Address>(address.address);
    store_address(ip_, own);
    if (is_link_local(ip_) && reporter_ == Ipv6Address{}) reporter_ = own;
  }
}

Ipv6Address reporter_of(std::span<const InterfaceAddress> addresses) {
  for (const InterfaceAddress& own : addresses) {
    const auto* const v6 = std::get_if<Ipv6Address>(&own.address);
    if (v6 != nullptr && is_link_local(v6->bytes.data())) return *v6;
  }
  return {};
}

}  // namespace warpline::packet
