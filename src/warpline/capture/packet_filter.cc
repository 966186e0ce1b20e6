// SPDX-License-Identifier: Apache-2.0
#include "warpline/capture/packet_filter.h"

#include <fmt/format.h>
#include <pcap/pcap.h>

namespace warpline::capture {
namespace {

constexpr int kLongestFrame = 65'535;

}  // namespace

Result<PacketFilter> PacketFilter::compile(const std::string& expression) {
  PacketFilter filter;
  if (expression.empty()) return filter;
  const std::unique_ptr<pcap_t, decltype(&pcap_close)> ethernet(pcap_open_dead(DLT_EN10MB, kLongestFrame), pcap_close);
  auto program = std::make_unique<bpf_program>();
  if (ethernet == nullptr) return environment_error("cannot compile the filter", "libpcap has no memory");
  if (pcap_compile(ethernet.get(), program.get(), expression.c_str(), 1, PCAP_NETMASK_UNKNOWN) != 0) {
    return usage_error(fmt::format("cannot use the filter '{}'", expression), pcap_geterr(ethernet.get()),
                       "write it as pcap-filter(7) says: 'udp port 9'");
  }
  filter.program_ = {program.release(), [](bpf_program* compiled) {
                       pcap_freecode(compiled);
                       delete compiled;
                     }};
  return filter;
}

bool PacketFilter::matches(const std::uint8_t* bytes, std::uint32_t length, std::uint32_t captured) const {
  return program_ == nullptr || bpf_filter(program_->bf_insns, bytes, length, captured) != 0;
}

}  // namespace warpline::capture
