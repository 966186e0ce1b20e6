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

}  // namespace

Result<PcapFacts> check_pcap(const std::string& path) {
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
  return check_pcap(file, path);
}

Result<PcapFacts> check_pcap(std::FILE* file, const std::string& name) {
  const std::string what = fmt::format("pcap {}", name);
  char problem[PCAP_ERRBUF_SIZE] = "";
  const std::unique_ptr<pcap_t, void (*)(pcap_t*)> capture(pcap_fopen_offline(file, problem), pcap_close);
  if (!capture) {
    std::fclose(file);
    return usage_error(what, problem, kHowToCapture);
  }
  if (const int type = pcap_datalink(capture.get()); type != DLT_EN10MB) {
    return usage_error(what, fmt::format("its link type is {}, not Ethernet", link_type_name(type)),
                       "capture on an Ethernet interface, not on \"any\" or a tunnel");
  }
  PcapFacts facts;
  pcap_pkthdr* header = nullptr;
  const u_char* bytes = nullptr;
  int status = 0;
  while ((status = pcap_next_ex(capture.get(), &header, &bytes)) == 1) {
    ++facts.packets;
    facts.bytes += header->caplen;
    facts.longest = std::max<std::uint32_t>(facts.longest, header->caplen);
  }
  if (status != PCAP_ERROR_BREAK) {
    return usage_error(what, fmt::format("broken after {} packets: {}", facts.packets, pcap_geterr(capture.get())),
                       fmt::format("keep what is whole: `editcap {} whole.pcap`", name));
  }
  if (facts.packets == 0) return usage_error(what, "it holds no packets", kHowToCapture);
  return facts;
}

}  // namespace warpline::runtime
