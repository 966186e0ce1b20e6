// SPDX-License-Identifier: Apache-2.0
#include "warpline/route/route_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>

#include "warpline/base/files/read_file.h"
#include "warpline/packet/headers/ipv4.h"
#include "warpline/route/prefix.h"

namespace warpline::route {
namespace {

constexpr std::size_t kMostWords = 12;
constexpr std::uint16_t kLeastV6Mtu = 1280;  // RFC 8200, 5
using Words = std::span<const std::string_view>;

/// What a user wrote, fit to be quoted on one line.
std::string quoted(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  std::string copy(text.substr(0, kLongest));
  for (char& c : copy) {
    if (c < 0x20 || c == 0x7f) c = '?';
  }
  return fmt::format("'{}{}'", copy, text.size() > kLongest ? "..." : "");
}

template <typename Number>
std::optional<Number> number(std::string_view text, unsigned most) {
  unsigned value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size() || value > most) return std::nullopt;
  return static_cast<Number>(value);
}

/// Parts one line into words, and a comment off.
class Line {
 public:
  explicit Line(std::string_view text) {
    text = text.substr(0, text.find('#'));
    while (count_ < kMostWords) {
      const std::size_t begin = text.find_first_not_of(" \t\r");
      if (begin == std::string_view::npos) return;
      const std::size_t end = std::min(text.find_first_of(" \t\r", begin), text.size());
      words_[count_++] = text.substr(begin, end - begin);
      text.remove_prefix(end);
    }
  }
  [[nodiscard]] Words words() const { return {words_.data(), count_}; }

 private:
  std::array<std::string_view, kMostWords> words_;
  std::size_t count_ = 0;
};

/// Makes a RouteSet of lines and ports.
class RouteBuilder {
 public:
  RouteBuilder(const std::string& name, const std::vector<RouterPort>& ports, bool flows_allowed)
      : name_(name), ports_(ports), flows_allowed_(flows_allowed) {
    set_.hops = {{HopKind::none, 0, {}}, {HopKind::martian, 0, {}}, {HopKind::local, 0, {}}};
  }

  Result<RouteSet> build(std::string_view text) && {
    WARPLINE_CHECK(add_own());
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      ++line_;
      const Line line(text.substr(0, end));
      if (!line.words().empty()) WARPLINE_CHECK(add(line.words()));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    WARPLINE_CHECK(settle(set_.v4));
    WARPLINE_CHECK(settle(set_.v6));
    WARPLINE_CHECK(settle_flows(set_.flows_v4));
    WARPLINE_CHECK(settle_flows(set_.flows_v6));
    set_.from_file = from_file(set_.v4) + from_file(set_.v6) + set_.flows_v4.size() + set_.flows_v6.size();
    return std::move(set_);
  }

 private:
  [[nodiscard]] Error error(std::uint32_t line, std::string why, std::string fix) const {
    return usage_error(fmt::format("cannot use {}:{}", name_, line), std::move(why), std::move(fix));
  }
  [[nodiscard]] Error error(std::string why, std::string fix) const {
    return error(line_, std::move(why), std::move(fix));
  }

  template <typename Address>
  [[nodiscard]] std::vector<Route<Address>>& routes() {
    if constexpr (std::is_same_v<Address, Ipv4Address>) {
      return set_.v4;
    } else {
      return set_.v6;
    }
  }

  // What follows from the ports.

  Result<void> add_own() {
    for (const auto& [prefix, length] : martians<Ipv4Address>())
      set_.v4.push_back({prefix, length, RouteSet::kMartian, 0});
    for (const auto& [prefix, length] : martians<Ipv6Address>())
      set_.v6.push_back({prefix, length, RouteSet::kMartian, 0});
    for (std::uint16_t port = 0; port < ports_.size(); ++port) {
      for (const InterfaceAddress& own : ports_[port].addresses) {
        WARPLINE_CHECK(
            std::visit([&](const auto& address) { return add_link(address, own.prefix_length, port); }, own.address));
      }
    }
    return {};
  }

  template <typename Address>
  Result<void> add_link(const Address& address, std::uint8_t length, std::uint16_t port) {
    constexpr unsigned kBits = sizeof(Address) * 8;
    const bool link_local = is_link_local(address);
    if (!is_host(address) && !link_local) {
      return usage_error(fmt::format("cannot route by the address {}", to_string(IpAddress{address})),
                         "it is a loopback, group or reserved one", "give the port a host's address");
    }
    if (length == 0 && !link_local) {
      return usage_error(fmt::format("cannot route by the address {}/0", to_string(IpAddress{address})),
                         "every host would be on that link", "give the length of its prefix");
    }
    if constexpr (kBits == 32) {
      if (length < 31 && (address == masked(address, length) || address == broadcast(address, length))) {
        return usage_error(fmt::format("cannot route by the address {}/{}", to_string(IpAddress{address}), length),
                           "it is the address of the link itself, or of all hosts on it",
                           "give the port a host's address");
      }
    } else if (ports_[port].mtu < kLeastV6Mtu) {
      return usage_error(
          fmt::format("cannot route by the address {}", to_string(IpAddress{address})),
          fmt::format("IPv6 needs an MTU of {}, and port {} has {} (RFC 8200, 5)", kLeastV6Mtu, port, ports_[port].mtu),
          "use a larger --mtu, or leave the address out");
    }
    routes<Address>().push_back({address, kBits, RouteSet::kLocal, 0});
    if (link_local || length == kBits) return {};
    WARPLINE_TRY(const std::uint32_t hop, hop_index({HopKind::on_link, port, {}}));
    const Address link = masked(address, length);
    routes<Address>().push_back({link, length, hop, 0});
    if constexpr (kBits == 32) {
      if (length == 31) return {};  // RFC 3021
      // RFC 2644: what is meant for all on a link is not passed on.
      for (const Address& group : {link, broadcast(link, length)})
        set_.v4.push_back({group, kBits, RouteSet::kMartian, 0});
    }
    return {};
  }

  // One line.

  Result<void> add(Words words) {
    if (words.size() == kMostWords) return error("it has too many words", kHow);
    if (words[0] == "flow") return add_flow(words);
    const std::string_view text = words[0];
    const std::size_t slash = text.find('/');
    if (slash == std::string_view::npos) return not_a_prefix(text);
    const Result<IpAddress> address = parse_ip(text.substr(0, slash));
    if (!address) return not_a_prefix(text);
    return std::visit([&](const auto& prefix) { return add_prefix(prefix, text, text.substr(slash + 1), words); },
                      *address);
  }

  [[nodiscard]] Error not_a_prefix(std::string_view text) const {
    return error(fmt::format("{} is no prefix", quoted(text)), "write it like 10.1.0.0/16 or fd00:1::/64");
  }

  template <typename Address>
  Result<void> add_prefix(const Address& prefix, std::string_view text, std::string_view digits, Words words) {
    const auto length = number<std::uint8_t>(digits, sizeof(Address) * 8);
    if (!length) return not_a_prefix(text);
    if (masked(prefix, *length) != prefix) {
      return error(fmt::format("{} has bits behind its length", quoted(text)),
                   fmt::format("write {}/{}", to_string(IpAddress{masked(prefix, *length)}), *length));
    }
    if (in_martian(prefix, *length)) {
      return error(fmt::format("no router passes on what goes to {}", quoted(text)), "leave the line out");
    }
    WARPLINE_TRY(const std::uint32_t hop, read_hop(words.subspan(1), IpAddress{prefix}));
    routes<Address>().push_back({prefix, *length, hop, line_});
    return {};
  }

  Result<void> add_flow(Words words) {
    if (!flows_allowed_) return error("a flow is for exact match", "add --lookup exact, or leave the line out");
    if (words.size() < 4) return error("it is not said which flow", kHowFlow);
    const Result<IpAddress> source = parse_ip(words[1]);
    const Result<IpAddress> destination = parse_ip(words[2]);
    if (!source || !destination)
      return error(fmt::format("{} is no IP address", quoted(words[source ? 2 : 1])), kHowFlow);
    if (source->index() != destination->index()) return error("one address is IPv4, the other IPv6", kHowFlow);
    return std::visit(
        [&](const auto& from) { return add_flow(from, std::get<std::decay_t<decltype(from)>>(*destination), words); },
        *source);
  }

  template <typename Address>
  Result<void> add_flow(const Address& source, const Address& destination, Words words) {
    FlowKey<Address> key{source, destination};
    const std::string_view protocol = words[3];
    const std::optional<std::uint8_t> value = protocol == "tcp"   ? packet::kProtocolTcp
                                              : protocol == "udp" ? packet::kProtocolUdp
                                                                  : number<std::uint8_t>(protocol, 255);
    if (!value) return error(fmt::format("{} is no protocol", quoted(protocol)), "write tcp, udp or a number to 255");
    key.protocol = *value;
    std::size_t next = 4;
    if (has_ports(*value)) {
      if (words.size() < 6) return error("a flow of tcp or udp has two ports", kHowFlow);
      const auto from = number<std::uint16_t>(words[4], 0xffff);
      const auto to = number<std::uint16_t>(words[5], 0xffff);
      if (!from || !to) return error(fmt::format("{} is no port", quoted(words[from ? 5 : 4])), kHowFlow);
      packet::store_be16(key.source_port.data(), *from);
      packet::store_be16(key.destination_port.data(), *to);
      next = 6;
    }
    if (in_martian(destination, sizeof(Address) * 8)) {
      return error(fmt::format("no router passes on what goes to {}", quoted(words[2])), "leave the line out");
    }
    if (is_own_or_broadcast(destination)) {
      return error(fmt::format("{} follows from the ports' addresses", quoted(words[2])), "leave the line out");
    }
    WARPLINE_TRY(const std::uint32_t hop, read_hop(words.subspan(next), IpAddress{destination}));
    flows<Address>().push_back({key, hop, line_});
    return {};
  }

  /// Whether packets to `destination` are the router's own, or for all hosts on a link (RFC 2644).
  template <typename Address>
  [[nodiscard]] bool is_own_or_broadcast(const Address& destination) const {
    for (const RouterPort& port : ports_) {
      for (const InterfaceAddress& own : port.addresses) {
        const auto* const address = std::get_if<Address>(&own.address);
        if (address == nullptr) continue;
        if (*address == destination) return true;
        if constexpr (sizeof(Address) == 4) {
          const unsigned length = own.prefix_length;
          if (length < 31 && (destination == masked(*address, length) || destination == broadcast(*address, length)))
            return true;
        }
      }
    }
    return false;
  }

  template <typename Address>
  [[nodiscard]] std::vector<FlowRoute<Address>>& flows() {
    if constexpr (std::is_same_v<Address, Ipv4Address>) {
      return set_.flows_v4;
    } else {
      return set_.flows_v6;
    }
  }

  /// "via ADDR", "port N" or both. Most lines of a long file have one of a few hops: their text is remembered.
  Result<std::uint32_t> read_hop(Words words, const IpAddress& destination) {
    if (words.empty()) return error("it does not say where to", kHow);
    const std::string_view text(words.front().begin(), words.back().end());
    auto& known = known_[destination.index()];
    if (const auto found = known.find(text); found != known.end()) return found->second;
    WARPLINE_TRY(const NextHop hop, parse_hop(words, destination));
    WARPLINE_TRY(const std::uint32_t index, hop_index(hop));
    known.emplace(text, index);
    return index;
  }

  Result<NextHop> parse_hop(Words words, const IpAddress& destination) {
    std::optional<IpAddress> gateway;
    std::optional<std::uint16_t> port;
    bool onlink = false;
    for (std::size_t i = 0; i < words.size(); i += 2) {
      const std::string_view word = words[i];
      if (word == "onlink" && !onlink) {
        onlink = true;
        --i;  // a word by itself
        continue;
      }
      if (word != "via" && word != "port") return error(fmt::format("{} is not understood", quoted(word)), kHow);
      if (i + 1 == words.size()) return error(fmt::format("nothing follows '{}'", word), kHow);
      const std::string_view value = words[i + 1];
      if (word == "via") {
        if (gateway) return error("it has two gateways", kHow);
        Result<IpAddress> address = parse_ip(value);
        if (!address)
          return error(fmt::format("{} is no IP address", quoted(value)), "write it like 10.0.0.2 or fd00::2");
        gateway = *address;
      } else {
        if (port) return error("it has two ports", kHow);
        port = number<std::uint16_t>(value, 0xffff);
        if (!port || *port >= ports_.size()) {
          return error(
              fmt::format("there is no port {}", quoted(value)),
              ports_.size() == 1 ? "there is port 0" : fmt::format("there are ports 0 to {}", ports_.size() - 1));
        }
      }
    }
    if (onlink && (!gateway || !port)) return error("onlink is of a gateway and a port", kHow);
    if (!gateway && !port) return error("it does not say where to", kHow);
    return gateway ? by_gateway(*gateway, port, onlink, destination) : on_link(*port, destination);
  }

  Result<NextHop> on_link(std::uint16_t port, const IpAddress& destination) {
    const auto same_family = [&](const InterfaceAddress& own) { return own.address.index() == destination.index(); };
    if (std::ranges::none_of(ports_[port].addresses, same_family)) {
      return error(fmt::format("port {} has no address of that family to ask from", port),
                   "give it one with --address, or a gateway to the route");
    }
    return NextHop{HopKind::on_link, port, {}};
  }

  Result<NextHop> by_gateway(const IpAddress& gateway, std::optional<std::uint16_t> port, bool onlink,
                             const IpAddress& destination) {
    const std::string text = to_string(gateway);
    if (gateway.index() != destination.index()) {
      return error(fmt::format("destination and gateway {} are of two families", text),
                   "give both as IPv4 or both as IPv6");
    }
    for (const RouterPort& own : ports_) {
      if (std::ranges::find(own.addresses, gateway, &InterfaceAddress::address) != own.addresses.end()) {
        return error(fmt::format("the gateway {} is the router itself", text), "name a neighbour");
      }
    }
    const bool link_local = std::visit([](const auto& address) { return is_link_local(address); }, gateway);
    if (link_local && !port) return error(fmt::format("the gateway {} may be on any link", text), "add port N");
    if (onlink && !link_local && !std::visit([](const auto& address) { return is_host(address); }, gateway)) {
      return error(fmt::format("the gateway {} is no host", text), "name a neighbour");
    }
    if (link_local || onlink) {
      WARPLINE_CHECK(on_link(*port, destination));
      return NextHop{HopKind::gateway, *port, gateway};
    }
    int longest = -1;
    std::uint16_t found = 0;
    for (std::uint16_t i = 0; i < ports_.size(); ++i) {
      for (const InterfaceAddress& own : ports_[i].addresses) {
        if ((port && *port != i) || own.prefix_length <= longest || !is_neighbour(own, gateway)) continue;
        longest = own.prefix_length;
        found = i;
      }
    }
    if (longest < 0) {
      return error(port ? fmt::format("the gateway {} is not on the link of port {}", text, *port)
                        : fmt::format("the gateway {} is on no port's link", text),
                   fmt::format("the links are {}; where it is all the same, add port N onlink", links()));
    }
    return NextHop{HopKind::gateway, found, gateway};
  }

  [[nodiscard]] std::string links() const {
    std::string text;
    for (std::size_t i = 0; i < ports_.size(); ++i) {
      for (const InterfaceAddress& own : ports_[i].addresses) {
        text += fmt::format("{}{} (port {})", text.empty() ? "" : ", ", to_string(own), i);
      }
    }
    return text.empty() ? "none" : text;
  }

  Result<std::uint32_t> hop_index(const NextHop& hop) {
    const auto [found, added] = hop_indices_.emplace(hop, static_cast<std::uint32_t>(set_.hops.size()));
    if (added) {
      if (set_.hops.size() == RouteSet::kMostHops) {
        return error(fmt::format("it needs more than {} next hops", RouteSet::kMostHops), "use fewer gateways");
      }
      set_.hops.push_back(hop);
    }
    return found->second;
  }

  // All lines together.

  template <typename Address>
  Result<void> settle(std::vector<Route<Address>>& routes) {
    std::ranges::sort(routes, {},
                      [](const Route<Address>& route) { return std::tuple(route.length, route.prefix, route.line); });
    std::size_t kept = 0;
    for (const Route<Address>& route : routes) {
      if (kept != 0 && routes[kept - 1].length == route.length && routes[kept - 1].prefix == route.prefix) {
        const Route<Address>& first = routes[kept - 1];
        const std::string prefix = fmt::format("{}/{}", to_string(IpAddress{route.prefix}), route.length);
        if (first.line != 0) {
          return error(route.line, fmt::format("{} is in line {} already", prefix, first.line), "leave one out");
        }
        if (first.hop != route.hop) {
          if (route.line != 0) {
            return error(route.line, fmt::format("{} follows from the ports' addresses", prefix), "leave the line out");
          }
          return usage_error("cannot route by these addresses", fmt::format("{} is on two ports", prefix),
                             "give each port a link of its own");
        }
        continue;
      }
      routes[kept++] = route;
    }
    routes.resize(kept);
    return {};
  }

  template <typename Address>
  Result<void> settle_flows(std::vector<FlowRoute<Address>>& flows) {
    std::ranges::sort(flows, {}, [](const FlowRoute<Address>& flow) { return std::tuple(flow.key, flow.line); });
    const auto twice = std::ranges::adjacent_find(flows, {}, &FlowRoute<Address>::key);
    if (twice == flows.end()) return {};
    return error((twice + 1)->line, fmt::format("the flow is in line {} already", twice->line), "leave one out");
  }

  template <typename Address>
  static std::size_t from_file(const std::vector<Route<Address>>& routes) {
    return static_cast<std::size_t>(
        std::ranges::count_if(routes, [](const Route<Address>& route) { return route.line != 0; }));
  }

  static constexpr const char* kHow = "write PREFIX via GATEWAY, PREFIX port N, or both";
  static constexpr const char* kHowFlow = "write flow SOURCE DESTINATION udp|tcp PORT PORT via GATEWAY";

  const std::string& name_;
  const std::vector<RouterPort>& ports_;
  bool flows_allowed_;
  std::uint32_t line_ = 0;
  RouteSet set_;
  std::map<NextHop, std::uint32_t> hop_indices_;
  std::unordered_map<std::string_view, std::uint32_t> known_[2];  ///< IPv4's and IPv6's hops by their text
};

}  // namespace

Result<RouteSet> parse_routes(std::string_view text, const std::string& name, const std::vector<RouterPort>& ports,
                              bool flows_allowed) {
  return RouteBuilder(name, ports, flows_allowed).build(text);
}

Result<RouteSet> read_routes(const std::string& path, const std::vector<RouterPort>& ports, bool flows_allowed) {
  if (path.empty()) return parse_routes("", "no file", ports, flows_allowed);
  const auto unreadable = [&path](const std::string& why) {
    return usage_error(fmt::format("cannot read the routes of {}", path), why, "give --routes a file of routes");
  };
  const FileText file = read_file(path);
  if (file.problem != 0) return unreadable(file.problem == EISDIR ? "it is a folder" : std::strerror(file.problem));
  return parse_routes(file.text, path, ports, flows_allowed);
}

}  // namespace warpline::route
