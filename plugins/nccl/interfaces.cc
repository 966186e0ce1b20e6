// SPDX-License-Identifier: Apache-2.0
#include "nccl/interfaces.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>

namespace warpline::nccl {
namespace {

constexpr std::size_t kMostInterfaces = 16;

std::optional<IpAddress> usable_address(const sockaddr* address) {
  if (address == nullptr) return std::nullopt;
  if (address->sa_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, address, sizeof v4);
    Ipv4Address ip;
    std::memcpy(ip.bytes.data(), &v4.sin_addr, ip.bytes.size());
    return ip;
  }
  if (address->sa_family != AF_INET6) return std::nullopt;
  sockaddr_in6 v6;
  std::memcpy(&v6, address, sizeof v6);
  if (IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr)) return std::nullopt;
  Ipv6Address ip;
  std::memcpy(ip.bytes.data(), &v6.sin6_addr, ip.bytes.size());
  return ip;
}

template <typename Number>
Number number_in(const std::string& path, Number otherwise) {
  Number value = 0;
  std::ifstream file(path);
  return file >> value && value > 0 ? value : otherwise;
}

NicFacts describe(const ifaddrs& entry, const IpAddress& address) {
  NicFacts found;
  found.name = entry.ifa_name;
  found.address = address;
  const std::string folder = fmt::format("/sys/class/net/{}/", entry.ifa_name);
  found.local = (entry.ifa_flags & IFF_LOOPBACK) != 0;
  found.mtu = number_in(folder + "mtu", found.mtu);
  found.speed = number_in(folder + "speed", found.speed);
  const std::unique_ptr<char, decltype(&std::free)> path(::realpath((folder + "device").c_str(), nullptr), &std::free);
  if (path) found.pci_path = path.get();
  return found;
}

bool begins(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

}  // namespace

bool takes(std::string_view pattern, std::string_view name) {
  const bool leaves_out = begins(pattern, "^");
  if (leaves_out) pattern.remove_prefix(1);
  const bool whole = begins(pattern, "=");
  if (whole) pattern.remove_prefix(1);
  bool found = false;
  while (!pattern.empty()) {
    const std::string_view one = pattern.substr(0, pattern.find(','));
    pattern.remove_prefix(std::min(pattern.size(), one.size() + 1));
    if (!one.empty()) found = found || (whole ? name == one : begins(name, one));
  }
  return found != leaves_out;
}

std::vector<NicFacts> choose(std::vector<NicFacts> all, std::string_view pattern) {
  std::vector<NicFacts> chosen;
  const auto add = [&](const auto& wanted) {
    std::copy_if(all.begin(), all.end(), std::back_inserter(chosen), wanted);
  };
  if (!pattern.empty()) {
    add([&](const NicFacts& one) { return takes(pattern, one.name); });
  } else {
    const auto of_docker = [](const NicFacts& one) { return begins(one.name, "docker"); };
    add([&](const NicFacts& one) { return !one.local && !of_docker(one); });
    if (chosen.empty()) add(of_docker);
    if (chosen.empty()) add([](const NicFacts& one) { return one.local; });
  }
  if (chosen.size() > kMostInterfaces) chosen.resize(kMostInterfaces);
  return chosen;
}

Result<std::vector<NicFacts>> list_interfaces(std::string_view family) {
  ifaddrs* entries = nullptr;
  if (::getifaddrs(&entries) != 0)
    return environment_error("network interfaces", std::strerror(errno), "run `ip address` to see what is there");
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(entries, &::freeifaddrs);
  std::vector<NicFacts> found;
  for (const int wanted : {AF_INET, AF_INET6}) {
    if (!family.empty() && family != (wanted == AF_INET ? "AF_INET" : "AF_INET6")) continue;
    for (const ifaddrs* entry = entries; entry != nullptr; entry = entry->ifa_next) {
      if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != wanted) continue;
      constexpr unsigned kUp = IFF_UP | IFF_RUNNING;
      const auto address = usable_address(entry->ifa_addr);
      const auto same = [&](const NicFacts& one) { return one.name == entry->ifa_name; };
      if (!address || (entry->ifa_flags & kUp) != kUp || std::any_of(found.begin(), found.end(), same)) continue;
      found.push_back(describe(*entry, *address));
    }
  }
  return found;
}

}  // namespace warpline::nccl
