// SPDX-License-Identifier: Apache-2.0
// Headers of packets, for warpline.packet.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "arrays/frame_array.h"
#include "arrays/held_array.h"
#include "errors.h"
#include "rooms.h"
#include "warpline/base/address.h"
#include "warpline/packet/parse.h"
#include "warpline/packet/tcp_frame.h"
#include "warpline/packet/udp_frame.h"
#include "warpline/packet/verify.h"
#include "warpline/runtime/pcap_file.h"

namespace nb = nanobind;

namespace warpline::python {
namespace {

/// The bytes of an array of Python's, whatever numbers these are. nanobind's own arrays of bytes would convert others,
/// each number to one byte. TypeError: it is none, or not in one piece.
HeldArray bytes_in(nb::handle array, const char* what) {
  try {
    return HeldArray(array, what, false);
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_ValueError)) throw;
    throw nb::type_error(error.what());
  }
}

/// The same of a frame, which is of bytes: numbers of more are no packet's.
HeldArray frame_in(nb::handle array) {
  HeldArray held = bytes_in(array, "frame");
  if (held.item_bytes() != 1 || held.dimensions() != 1)
    throw nb::type_error("frame: a packet is an array of bytes in one dimension; give a view of its bytes");
  return held;
}

/// The longest that a frame may be: what UDP and TCP carry at most, and all headers.
constexpr std::size_t kLongestFrame = 1U << 17;

std::span<std::uint8_t> bytes_of(const nb::object& made) {
  return {reinterpret_cast<std::uint8_t*>(PyBytes_AsString(made.ptr())),
          static_cast<std::size_t>(PyBytes_Size(made.ptr()))};
}

nb::object empty_bytes(std::size_t size) {
  PyObject* const made = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size));
  if (made == nullptr) throw nb::python_error();
  return nb::steal(made);
}

Segment segment_of(std::span<std::uint8_t> frame) {
  if (frame.size() > kLongestFrame) raise(usage_error("a frame", "it has more bytes than any packet"));
  // Whoever writes has made the bytes itself.
  return {frame.data(), static_cast<std::uint32_t>(frame.size()), 0, Verdict::forward};
}

/// What parse() found, with the fields that tell who talks to whom.
struct Headers {
  packet::ParsedFrame at;
  std::string source_mac, destination_mac, source, destination;
  std::uint16_t source_port = 0;
  std::uint16_t destination_port = 0;
};

template <typename Address>
std::string address_at(const std::uint8_t* bytes) {
  Address address;
  std::memcpy(address.bytes.data(), bytes, address.bytes.size());
  if constexpr (std::is_same_v<Address, MacAddress>) {
    return to_string(address);
  } else {
    return to_string(IpAddress(address));
  }
}

Headers parse_frame(nb::handle array) {
  const HeldArray held = frame_in(array);
  const std::span<std::uint8_t> frame = held.bytes();
  Segment segment = segment_of(frame);
  Headers found{packet::parse(FrameRef{&segment, 1, segment.length}), {}, {}, {}, {}};
  const packet::ParsedFrame& at = found.at;
  const std::uint8_t* const bytes = frame.data();
  if (at.l2_length > 0) {
    found.destination_mac = address_at<MacAddress>(bytes);
    found.source_mac = address_at<MacAddress>(bytes + 6);
  }
  if (at.l3 == packet::L3Kind::ipv4) {
    const packet::Ipv4View ip(bytes + at.l3_offset);
    found.source = address_at<Ipv4Address>(ip.source());
    found.destination = address_at<Ipv4Address>(ip.destination());
  } else if (at.l3 == packet::L3Kind::ipv6) {
    const packet::Ipv6View ip(bytes + at.l3_offset);
    found.source = address_at<Ipv6Address>(ip.source());
    found.destination = address_at<Ipv6Address>(ip.destination());
  }
  if (at.l4 == packet::L4Kind::udp || at.l4 == packet::L4Kind::tcp) {  // both begin with the ports
    const packet::UdpView ports(bytes + at.l4_offset);
    found.source_port = ports.source_port();
    found.destination_port = ports.destination_port();
  }
  return found;
}

/// "forward", or the name of what is wrong with the frame or its checksums.
std::string verify(nb::handle array) {
  const HeldArray held = frame_in(array);
  Segment segment = segment_of(held.bytes());
  const FrameRef whole{&segment, 1, segment.length};
  const packet::ParsedFrame parsed = packet::parse(whole);
  return std::string(
      name(parsed.verdict == Verdict::forward ? packet::verify_checksums(whole, parsed) : parsed.verdict));
}

/// The same frame with right checksums.
nb::object with_checksums(nb::handle array) {
  const HeldArray held = frame_in(array);
  const std::span<std::uint8_t> frame = held.bytes();
  (void)segment_of(frame);  // refuses what is too long
  nb::object made = empty_bytes(frame.size());
  const std::span<std::uint8_t> bytes = bytes_of(made);
  if (!bytes.empty()) std::memcpy(bytes.data(), frame.data(), bytes.size());
  Segment segment{bytes.data(), static_cast<std::uint32_t>(bytes.size()), 0, Verdict::forward};
  const FrameRef whole{&segment, 1, segment.length};
  const packet::ParsedFrame parsed = packet::parse(whole);
  if (parsed.verdict != Verdict::forward) {
    raise(usage_error("checksums of a frame", "it is malformed: " + std::string(name(parsed.verdict))));
  }
  packet::update_checksums(whole, parsed);
  return made;
}

/// Sets what both kinds of frames have.
template <typename Frame>
void address(Frame& header, const std::string& source_mac, const std::string& destination_mac,
             const std::string& source, const std::string& destination) {
  header.source_mac = value_or_raise(parse_mac(source_mac));
  header.destination_mac = value_or_raise(parse_mac(destination_mac));
  header.source = value_or_raise(parse_ip(source));
  header.destination = value_or_raise(parse_ip(destination));
}

/// Makes headers before the payload.
template <typename Frame>
nb::object frame_of(const Frame& header, std::uint32_t headers, nb::handle array) {
  const HeldArray held = bytes_in(array, "payload");
  const std::span<std::uint8_t> payload = held.bytes();
  if (payload.size() > kLongestFrame) raise(usage_error("a frame", "the payload is longer than a datagram may be"));
  nb::object made = empty_bytes(headers + payload.size());
  const std::span<std::uint8_t> bytes = bytes_of(made);
  if (payload.size() > 0) std::memcpy(bytes.data() + headers, payload.data(), payload.size());
  packet::ChecksumSum sum;
  sum.add(bytes.data() + headers, static_cast<std::uint32_t>(payload.size()));
  if (packet::emit(header, bytes.first(headers), static_cast<std::uint32_t>(payload.size()), sum) == 0) {
    raise(usage_error("a frame", "the addresses are of two families, or the payload is longer than a datagram may be"));
  }
  return made;
}

nb::object make_udp(nb::handle payload, const std::string& source_mac, const std::string& destination_mac,
                    const std::string& source, const std::string& destination, std::uint16_t source_port,
                    std::uint16_t destination_port, std::uint8_t type_of_service, std::uint8_t time_to_live) {
  packet::UdpFrame header;
  address(header, source_mac, destination_mac, source, destination);
  header.source_port = source_port;
  header.destination_port = destination_port;
  header.type_of_service = type_of_service;
  header.time_to_live = time_to_live;
  return frame_of(header, packet::udp_headers_length(header), payload);
}

nb::object make_tcp(nb::handle payload, const std::string& source_mac, const std::string& destination_mac,
                    const std::string& source, const std::string& destination, std::uint16_t source_port,
                    std::uint16_t destination_port, std::uint8_t type_of_service, std::uint8_t time_to_live,
                    std::uint32_t sequence, std::uint32_t acknowledgement, std::uint8_t flags, std::uint16_t window) {
  packet::TcpFrame header;
  address(header, source_mac, destination_mac, source, destination);
  header.tcp.source_port = source_port;
  header.tcp.destination_port = destination_port;
  header.tcp.sequence = sequence;
  header.tcp.acknowledgement = acknowledgement;
  header.tcp.flags = flags;
  header.tcp.window = window;
  header.type_of_service = type_of_service;
  header.time_to_live = time_to_live;
  return frame_of(header, packet::tcp_headers_length(header), payload);
}

/// (bytes, offsets, times, lengths) of a capture, of which each keeps all the memory.
nb::tuple read_capture(const std::string& path) {
  auto read = [&] {
    const nb::gil_scoped_release unlocked;
    return runtime::read_pcap(path);
  }();
  const auto packets = std::make_shared<runtime::PcapPackets>(value_or_raise(std::move(read)));
  const auto numbers = [&](std::vector<std::int64_t>& of) {
    return FrameArray(packets, of.data(), of.size(), kDlInt64);
  };
  return nb::make_tuple(FrameArray(packets, packets->bytes.data(), packets->bytes.size(), kDlUint8),
                        numbers(packets->offsets), numbers(packets->times_ns), numbers(packets->lengths));
}

const char* name_of(packet::L3Kind kind) {
  constexpr const char* kNames[] = {"none", "arp", "ipv4", "ipv6"};
  return kNames[static_cast<std::size_t>(kind)];
}

const char* name_of(packet::L4Kind kind) {
  constexpr const char* kNames[] = {"none", "icmp", "icmpv6", "udp", "tcp"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace

void add_packet(nb::module_& module) {
  nb::class_<Headers>(module, "Headers")
      .def_prop_ro("verdict", [](const Headers& self) { return std::string(name(self.at.verdict)); })
      .def_prop_ro("l3", [](const Headers& self) { return name_of(self.at.l3); })
      .def_prop_ro("l4", [](const Headers& self) { return name_of(self.at.l4); })
      .def_prop_ro("protocol", [](const Headers& self) { return self.at.protocol; })
      .def_prop_ro("vlan",
                   [](const Headers& self) {
                     nb::list tags;
                     for (std::uint8_t i = 0; i < self.at.vlan_tags; ++i) tags.append(self.at.vlan[i]);
                     return nb::tuple(tags);
                   })
      .def_prop_ro("fragment", [](const Headers& self) { return self.at.fragment; })
      .def_prop_ro("ether_type", [](const Headers& self) { return self.at.ether_type; })
      .def_prop_ro("l3_offset", [](const Headers& self) { return self.at.l3_offset; })
      .def_prop_ro("l4_offset", [](const Headers& self) { return self.at.l4_offset; })
      .def_prop_ro("payload_offset", [](const Headers& self) { return self.at.payload_offset; })
      .def_prop_ro("payload_length", [](const Headers& self) { return self.at.payload_length; })
      .def_ro("source_mac", &Headers::source_mac)
      .def_ro("destination_mac", &Headers::destination_mac)
      .def_ro("source", &Headers::source)
      .def_ro("destination", &Headers::destination)
      .def_ro("source_port", &Headers::source_port)
      .def_ro("destination_port", &Headers::destination_port);
  module.def("read_pcap", &read_capture, nb::arg("path"));
  module.def("parse", &parse_frame, nb::arg("frame").none());
  module.def("verify", &verify, nb::arg("frame").none());
  module.def("with_checksums", &with_checksums, nb::arg("frame").none());
  module.def("make_udp", &make_udp);
  module.def("make_tcp", &make_tcp);
}

}  // namespace warpline::python
