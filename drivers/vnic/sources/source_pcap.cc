// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <pcap/pcap.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "vnic/sources/source.h"
#include "vnic/wire/packet_buffer.h"

namespace warpline::vnic {
namespace {

/// libpcap, loaded when a capture is to be read: the driver itself does not need it.
struct Pcap {
  void* library = nullptr;
  decltype(&pcap_open_offline) open = nullptr;
  decltype(&pcap_datalink) datalink = nullptr;
  decltype(&pcap_next_ex) next = nullptr;
  decltype(&pcap_geterr) error = nullptr;
  decltype(&pcap_close) close = nullptr;

  Pcap() {
    for (const char* name : {"libpcap.so.1", "libpcap.so.0.8", "libpcap.so"}) {
      if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    if (library == nullptr) return;
    open = reinterpret_cast<decltype(open)>(dlsym(library, "pcap_open_offline"));
    datalink = reinterpret_cast<decltype(datalink)>(dlsym(library, "pcap_datalink"));
    next = reinterpret_cast<decltype(next)>(dlsym(library, "pcap_next_ex"));
    error = reinterpret_cast<decltype(error)>(dlsym(library, "pcap_geterr"));
    close = reinterpret_cast<decltype(close)>(dlsym(library, "pcap_close"));
  }
  ~Pcap() {
    if (library != nullptr) dlclose(library);
  }
  Pcap(const Pcap&) = delete;
  Pcap& operator=(const Pcap&) = delete;

  [[nodiscard]] bool loaded() const { return open && datalink && next && error && close; }
};

}  // namespace

int Source::read_pcap(const std::string& path, std::string& problem) {
  struct stat facts{};
  if (stat(path.c_str(), &facts) != 0) {
    const int error = errno;
    problem = "pcap=" + path + ": " + std::strerror(error);
    return -error;
  }
  if (!S_ISREG(facts.st_mode)) {
    problem = "pcap=" + path + ": not a regular file";
    return -EINVAL;
  }
  const Pcap pcap;
  if (!pcap.loaded()) {
    problem = "pcap=" + path + ": there is no libpcap to read it with; install libpcap0.8";
    return -ENOTSUP;
  }
  char text[PCAP_ERRBUF_SIZE] = "";
  const std::unique_ptr<pcap_t, decltype(&pcap_close)> capture(pcap.open(path.c_str(), text), pcap.close);
  if (!capture) {
    problem = "pcap=" + path + ": " + text;
    return -EINVAL;
  }
  if (pcap.datalink(capture.get()) != DLT_EN10MB) {
    problem = "pcap=" + path + ": not a capture of Ethernet";
    return -EINVAL;
  }
  pcap_pkthdr* header = nullptr;
  const u_char* bytes = nullptr;
  int status = 0;
  std::uint32_t longest = 0;
  while ((status = pcap.next(capture.get(), &header, &bytes)) == 1) {
    if (header->caplen == 0) continue;
    if (header->caplen > PacketBuffer::kMaxFrame) {
      problem = "pcap=" + path + ": a frame of " + std::to_string(header->caplen) + " bytes";
      return -EINVAL;
    }
    if (bytes_.size() + header->caplen > kMaxPcapBytes) {
      problem = "pcap=" + path + ": more than " + std::to_string(kMaxPcapBytes >> 20) + " MiB of frames";
      return -E2BIG;
    }
    places_.push_back({bytes_.size(), header->caplen});
    bytes_.insert(bytes_.end(), bytes, bytes + header->caplen);
    longest = std::max<std::uint32_t>(longest, header->caplen);
  }
  if (status != PCAP_ERROR_BREAK) {
    problem =
        "pcap=" + path + ": broken after " + std::to_string(places_.size()) + " frames: " + pcap.error(capture.get());
    return -EINVAL;
  }
  if (places_.empty()) {
    problem = "pcap=" + path + ": it holds no frames";
    return -EINVAL;
  }
  handed_.resize(longest);
  return 0;
}

}  // namespace warpline::vnic
