// SPDX-License-Identifier: Apache-2.0
#include "warpline/datapath/run_inputs.h"

#include <fmt/format.h>

#include "warpline/runtime/pcap_file.h"
#include "warpline/runtime/port_spec.h"

namespace warpline::datapath {
namespace {

/// Packets that a port can ever receive because it replays a file once; 0 for all other ports.
Result<std::uint64_t> recorded_packets(const std::string& text) {
  WARPLINE_TRY(const runtime::PortSpec spec, runtime::parse_port_spec(text));
  if (spec.driver != "net_pcap") return std::uint64_t{0};
  const auto endless = spec.arguments.find("infinite_rx");
  if (endless != spec.arguments.end() && endless->second != "0") return std::uint64_t{0};
  std::uint64_t packets = 0;
  const auto [first, last] = spec.arguments.equal_range("rx_pcap");  // one for each queue
  for (auto file = first; file != last; ++file) {
    WARPLINE_TRY(const runtime::PcapFacts facts, runtime::check_pcap(file->second));
    packets += facts.packets;
  }
  return packets;
}

/// Returns whether it is a net_memif that lends its server the memory of packets. Once connected it closes the files of
/// that memory, which are EAL's (memif/rte_eth_memif.c memif_connect), so that whatever has their numbers by then is
/// what a second one sends.
Result<bool> lends_memory(const std::string& text) {
  WARPLINE_TRY(const runtime::PortSpec spec, runtime::parse_port_spec(text));
  const auto value = [&spec](const char* key) {
    const auto found = spec.arguments.find(key);
    return found == spec.arguments.end() ? std::string() : found->second;
  };
  const std::string role = value("role");
  return spec.driver == "net_memif" && value("zero-copy") == "yes" && role != "server" && role != "master";
}

}  // namespace

std::uint64_t RunInputs::bound(std::uint64_t asked) const {
  return recorded != 0 && (asked == 0 || asked > recorded) ? recorded : asked;
}

bool RunInputs::used_up(std::uint64_t packets, std::uint64_t received, std::span<const port::Port> ports) const {
  if (packets == 0) return false;
  if (received < packets && recorded != 0) {  // what is lost never comes again
    for (const port::Port& port : ports) {
      const port::PortCounters counters = port.counters();
      received += counters.rx_errors + counters.rx_no_mbuf;
    }
  }
  return received >= packets;
}

std::string spec_in_force(const std::string& spec, memory::MemoryKind payload) {
  return payload == memory::MemoryKind::device ? runtime::without_inlining(spec) : spec;
}

Result<RunInputs> look_at_inputs(std::span<const port::PortSettings> ports, memory::MemoryKind payload) {
  RunInputs inputs;
  bool endless = false;
  bool lent = false;
  for (const port::PortSettings& port : ports) {
    WARPLINE_CHECK(runtime::check_port_spec(port.spec));
    WARPLINE_TRY(const std::uint64_t packets, recorded_packets(port.spec));
    endless = endless || packets == 0;
    WARPLINE_TRY(const bool lends, lends_memory(port.spec));
    if (lends && lent) {
      return usage_error(
          fmt::format("port {}", port.spec),
          "another port has zero-copy=yes, and net_memif closes the files of memory once it is connected",
          "leave zero-copy=yes out of all but one");
    }
    lent = lent || lends;
    inputs.recorded += packets;
    inputs.specs.push_back(spec_in_force(port.spec, payload));
    inputs.nodes.push_back(runtime::port_node(port.spec));
  }
  if (endless) inputs.recorded = 0;
  return inputs;
}

}  // namespace warpline::datapath
