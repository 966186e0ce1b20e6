// SPDX-License-Identifier: Apache-2.0
// malformed_pcap OUT.pcap: writes the malformed frames as a capture, and on stdout a line `name<TAB>verdict` for each.

#include <array>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

#include "frames/malformed_frames.h"

namespace {

void put32(std::ofstream& file, std::uint32_t value) {
  std::array<char, 4> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(value >> (8 * i));
  file.write(bytes.data(), bytes.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: malformed_pcap OUT.pcap\n", stderr);
    return 2;
  }
  constexpr std::uint32_t kMagic = 0xa1b2c3d4;  // microseconds, little endian
  constexpr std::uint32_t kVersion = 2 | 4 << 16;
  constexpr std::uint32_t kSnapLength = 65535;
  constexpr std::uint32_t kEthernet = 1;
  std::ofstream file(argv[1], std::ios::binary | std::ios::trunc);
  for (const std::uint32_t word : {kMagic, kVersion, 0U, 0U, kSnapLength, kEthernet}) put32(file, word);
  std::uint32_t microsecond = 0;
  for (const warpline::MalformedFrame& frame : warpline::malformed_frames()) {
    const auto length = static_cast<std::uint32_t>(frame.bytes.size());
    for (const std::uint32_t word : {0U, microsecond++, length, length}) put32(file, word);
    file.write(reinterpret_cast<const char*>(frame.bytes.data()), length);
    std::printf("%s\t%s\n", frame.name.c_str(), std::string(warpline::name(frame.verdict)).c_str());
  }
  file.close();
  if (!file) {
    std::fprintf(stderr, "malformed_pcap: cannot write %s\n", argv[1]);
    return 3;
  }
  return 0;
}
