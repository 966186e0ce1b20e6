// SPDX-License-Identifier: Apache-2.0
#include "warpline/runtime/pcap_file.h"

#include <fmt/format.h>
#include <pcap/pcap.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

namespace warpline::runtime {
namespace {

constexpr const char* kHowToCapture = "capture one with `tcpdump -i IFACE -w FILE`";

std::string link_type_name(int type) {
  const char* const known = pcap_datalink_val_to_name(type);
  return known != nullptr ? known : fmt::format("number {}", type);
}

/// Opens a capture that has something in it.
Result<std::FILE*> open_capture(const std::string& path) {
  struct stat facts{};
  if (stat(path.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode)) {
    return usage_error(fmt::format("pcap {}", path), "not a regular file", "give the path of a capture file");
  }
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) {
    return usage_error(fmt::format("pcap {}", path), std::strerror(errno),
                       errno == EACCES ? fmt::format("allow reading it: `chmod a+r {}`", path) : "check the path");
  }
  if (facts.st_size == 0) {
    std::fclose(file);
    return usage_error(fmt::format("pcap {}", path), "the file is empty", kHowToCapture);
  }
  return file;
}

/// Calls `visit(header, bytes)` for each packet of a file, which it closes. The times that headers have are in
/// nanoseconds. Returns how many there were.
template <typename Visit>
Result<std::uint64_t> walk(std::FILE* file, const std::string& name, Visit&& visit) {
  const std::string what = fmt::format("pcap {}", name);
  char problem[PCAP_ERRBUF_SIZE] = "";
  const std::unique_ptr<pcap_t, void (*)(pcap_t*)> capture(
      pcap_fopen_offline_with_tstamp_precision(file, PCAP_TSTAMP_PRECISION_NANO, problem), pcap_close);
  if (!capture) {
    std::fclose(file);
    return usage_error(what, problem, kHowToCapture);
  }
  if (const int type = pcap_datalink(capture.get()); type != DLT_EN10MB) {
    return usage_error(what, fmt::format("its link type is {}, not Ethernet", link_type_name(type)),
                       "capture on an Ethernet interface, not on \"any\" or a tunnel");
  }
  std::uint64_t packets = 0;
  pcap_pkthdr* header = nullptr;
  const u_char* bytes = nullptr;
  int status = 0;
  while ((status = pcap_next_ex(capture.get(), &header, &bytes)) == 1) {
    ++packets;
    visit(*header, bytes);
  }
  if (status != PCAP_ERROR_BREAK) {
    return usage_error(what, fmt::format("broken after {} packets: {}", packets, pcap_geterr(capture.get())),
                       fmt::format("keep what is whole: `editcap {} whole.pcap`", name));
  }
  if (packets == 0) return usage_error(what, "it holds no packets", kHowToCapture);
  return packets;
}

}  // namespace

Result<PcapFacts> check_pcap(const std::string& path) {
  WARPLINE_TRY(std::FILE* const file, open_capture(path));
  return check_pcap(file, path);
}

Result<PcapFacts> check_pcap(std::FILE* file, const std::string& name) {
  PcapFacts facts;
  WARPLINE_TRY(facts.packets, walk(file, name, [&facts](const pcap_pkthdr& header, const u_char* /*bytes*/) {
                 facts.bytes += header.caplen;
                 facts.longest = std::max<std::uint32_t>(facts.longest, header.caplen);
               }));
  return facts;
}

Result<PcapPackets> read_pcap(const std::string& path) {
  WARPLINE_TRY(std::FILE* const file, open_capture(path));
  return read_pcap(file, path);
}

Result<PcapPackets> read_pcap(std::FILE* file, const std::string& name) {
  constexpr std::uint64_t kNanosASecond = 1'000'000'000;
  PcapPackets packets;
  packets.offsets.push_back(0);
  WARPLINE_CHECK(walk(file, name, [&packets](const pcap_pkthdr& header, const u_char* bytes) {
    packets.bytes.insert(packets.bytes.end(), bytes, bytes + header.caplen);
    packets.offsets.push_back(static_cast<std::int64_t>(packets.bytes.size()));
    // Unsigned: a file may claim any time.
    packets.times_ns.push_back(static_cast<std::int64_t>(static_cast<std::uint64_t>(header.ts.tv_sec) * kNanosASecond +
                                                         static_cast<std::uint64_t>(header.ts.tv_usec)));
    packets.lengths.push_back(header.len);
  }));
  return packets;
}

}  // namespace warpline::runtime
