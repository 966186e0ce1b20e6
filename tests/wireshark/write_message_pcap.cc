// SPDX-License-Identifier: Apache-2.0
// message_pcap OUT.pcap well-formed|damaged: writes frames with packets of message/ as a capture, and on stdout a line
// `verdict<TAB>description` for each, both by the program's own code. Over IPv4, IPv6 and with a VLAN tag, in turns.

#include <array>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "warpline/packet/headers/message_header.h"
#include "warpline/packet/udp_frame.h"
#include "wireshark/message_packets.h"

namespace {

using namespace warpline;

constexpr std::uint16_t kPort = 4433;

std::vector<std::uint8_t> frame_around(const std::vector<std::uint8_t>& payload, std::size_t turn) {
  packet::UdpFrame header;
  header.destination_mac = *parse_mac("02:00:00:00:00:02");
  header.source_mac = *parse_mac("02:00:00:00:00:01");
  const bool six = turn % 3 == 1;
  header.source = *parse_ip(six ? "2001:db8::1" : "192.0.2.1");
  header.destination = *parse_ip(six ? "2001:db8::2" : "192.0.2.2");
  header.source_port = 40000;
  header.destination_port = kPort;
  std::vector<std::uint8_t> frame(packet::udp_headers_length(header));
  frame.insert(frame.end(), payload.begin(), payload.end());
  if (packet::emit(header, frame) == 0) std::abort();
  if (turn % 3 == 2) frame.insert(frame.begin() + 12, {0x81, 0x00, 0x00, 0x07});
  return frame;
}

void put32(std::ofstream& file, std::uint32_t value) {
  std::array<char, 4> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(value >> (8 * i));
  file.write(bytes.data(), bytes.size());
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view which = argc == 3 ? argv[2] : "";
  if (which != "well-formed" && which != "damaged") {
    std::fputs("usage: message_pcap OUT.pcap well-formed|damaged\n", stderr);
    return 2;
  }
  const auto payloads = which == "damaged" ? damaged_message_packets(1, 40) : message_packets();
  std::ofstream file(argv[1], std::ios::binary | std::ios::trunc);
  // Little endian, microseconds, version 2.4, whole frames of Ethernet (pcap-savefile(5)).
  for (const std::uint32_t word : {0xa1b2c3d4U, 2U | 4U << 16, 0U, 0U, 65535U, 1U}) put32(file, word);
  for (std::size_t i = 0; i < payloads.size(); ++i) {
    const std::vector<std::uint8_t> frame = frame_around(payloads[i], i);
    const auto length = static_cast<std::uint32_t>(frame.size());
    for (const std::uint32_t word : {0U, static_cast<std::uint32_t>(i), length, length}) put32(file, word);
    file.write(reinterpret_cast<const char*>(frame.data()), length);
    const auto bytes = static_cast<std::uint32_t>(payloads[i].size());
    std::printf("%s\t%s\n", std::string(verdict_of_message(payloads[i])).c_str(),
                packet::describe_message(payloads[i].data(), bytes).c_str());
  }
  file.close();
  if (!file) {
    std::fprintf(stderr, "message_pcap: cannot write %s\n", argv[1]);
    return 3;
  }
  return 0;
}
