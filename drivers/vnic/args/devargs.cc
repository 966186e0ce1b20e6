// SPDX-License-Identifier: Apache-2.0
#include "vnic/args/devargs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <exception>
#include <string_view>
#include <variant>
#include <vector>

#include <rte_ethdev.h>

#include "vnic/args/fault_args.h"
#include "vnic/common/limits.h"
#include "vnic/common/log.h"
#include "warpline/base/nearest.h"
#include "warpline/base/units.h"

namespace warpline::vnic {
namespace {

constexpr std::string_view kDriverName = "net_vnic";
constexpr std::uint64_t kMostBuffer = 1U << 30;
constexpr std::uint64_t kMostCpu = 4095;

/// One key's value on its way into Devargs.
struct Value {
  std::string_view key;
  std::string_view text;

  [[nodiscard]] Error refuse(std::string why, std::string fix = {}) const {
    return usage_error(fmt::format("cannot set {}={}", key, text), std::move(why), std::move(fix));
  }
  [[nodiscard]] Result<std::uint64_t> number(std::uint64_t least, std::uint64_t most) const {
    WARPLINE_TRY(const std::uint64_t value, parse_count(text));
    if (value < least || value > most) return refuse(fmt::format("it must lie between {} and {}", least, most));
    return value;
  }
};

Result<void> set_wire(const Value& value, Devargs& args) {
  constexpr std::pair<std::string_view, WireKind> kWires[] = {{"loopback", WireKind::loopback},
                                                              {"source", WireKind::source},
                                                              {"sink", WireKind::sink},
                                                              {"static", WireKind::fixed}};
  args.peer.clear();
  for (const auto& [name, kind] : kWires) {
    if (value.text != name) continue;
    args.wire = kind;
    return {};
  }
  if (!value.text.starts_with(kDriverName)) {
    return value.refuse("there is no such wire",
                        "there are loopback, source, sink, static, and the names of ports, "
                        "such as net_vnic1");
  }
  args.wire = WireKind::peer;
  args.peer = value.text;
  return {};
}

Result<void> set_engine(const Value& value, Devargs& args) {
  if (value.text != "inline" && value.text != "thread") {
    return value.refuse("there is no such engine", "there are inline and thread");
  }
  args.engine = value.text == "inline" ? EngineKind::inline_ : EngineKind::thread;
  return {};
}

Result<void> set_refill(const Value& value, Devargs& args) {
  constexpr std::string_view kNames[] = {"computed", "mbuf", "ring"};
  const auto* const name = std::ranges::find(kNames, value.text);
  if (name == std::end(kNames)) return value.refuse("there is no such way", "there are computed, mbuf and ring");
  args.refill = static_cast<Refill>(name - kNames);
  return {};
}

Result<void> set_cpu(const Value& value, Devargs& args) {
  WARPLINE_TRY(const std::uint64_t cpu, value.number(0, kMostCpu));
  args.engine_cpu = static_cast<int>(cpu);
  return {};
}

Result<void> set_size(const Value& value, Devargs& args) {
  WARPLINE_TRY(const std::uint64_t size, value.number(Devargs::kMinSize, Devargs::kMaxSize));
  args.size = static_cast<std::uint32_t>(size);
  return {};
}

Result<void> set_flows(const Value& value, Devargs& args) {
  WARPLINE_TRY(const std::uint64_t flows, value.number(1, Devargs::kMaxFlows));
  args.flows = static_cast<std::uint32_t>(flows);
  return {};
}

/// `step=10@100ms`: ten times the rate from 100 ms on.
Result<void> set_step(const Value& value, Devargs& args) {
  constexpr std::uint64_t kMostTimes = 1'000'000;
  const std::size_t at = value.text.find('@');
  if (at == std::string_view::npos) return value.refuse("it has no time", "write step=10@100ms");
  WARPLINE_TRY(const std::uint64_t times, (Value{value.key, value.text.substr(0, at)}.number(1, kMostTimes)));
  WARPLINE_TRY(const Nanos after, parse_nanos(value.text.substr(at + 1), 1));
  args.step = static_cast<double>(times);
  args.step_nanos = static_cast<double>(after.value);
  return {};
}

Result<void> set_pcap(const Value& value, Devargs& args) {
  if (value.text.empty()) return value.refuse("no file is named");
  args.pcap = value.text;
  return {};
}

Result<void> set_buffer(const Value& value, Devargs& args) {
  WARPLINE_TRY(const std::uint64_t bytes, value.number(Devargs::kMinBuffer, kMostBuffer));
  args.buffer = static_cast<std::uint32_t>(bytes);
  return {};
}

Result<void> set_queues(const Value& value, Devargs& args) {
  WARPLINE_TRY(const std::uint64_t queues, value.number(1, kMaxQueues));
  args.rx_queues = args.tx_queues = static_cast<std::uint16_t>(queues);
  return {};
}

Result<void> set_fast_free(const Value& value, Devargs& args) {
  WARPLINE_TRY(const std::uint64_t offered, value.number(0, 1));
  args.fast_free = offered == 1;
  return {};
}

Result<std::uint16_t> power_of_two(const Value& value, std::uint16_t most) {
  WARPLINE_TRY(const std::uint64_t number, value.number(1, most));
  if (!std::has_single_bit(number)) return value.refuse("it must be a power of two");
  return static_cast<std::uint16_t>(number);
}

Result<void> set_rx_align(const Value& value, Devargs& args) {
  WARPLINE_TRY(args.rx_align, power_of_two(value, Devargs::kMaxRxAlign));
  return {};
}

Result<void> set_rx_buffer_unit(const Value& value, Devargs& args) {
  WARPLINE_TRY(args.rx_buffer_unit, power_of_two(value, Devargs::kMaxBufferUnit));
  return {};
}

Result<void> set_seed(const Value& value, Devargs& args) {
  WARPLINE_TRY(args.seed, value.number(0, UINT64_MAX));
  return {};
}

Result<void> set_link_up_after(const Value& value, Devargs& args) {
  WARPLINE_TRY(const std::uint64_t looks, value.number(0, UINT32_MAX));
  args.link_up_after = static_cast<std::uint32_t>(looks);
  return {};
}

/// Those of mlx5's own arguments that have something to do with payload; names and meaning are that driver's.
Result<std::uint16_t> inline_setting(const Value& value, const Devargs& args) {
  if (!args.reads_sent.can_be_set) {
    return value.refuse(args.persona->name.empty() ? "net_vnic reads no payload with the CPU"
                                                   : fmt::format("{} has no such argument", args.persona->name),
                        "it is for persona=mlx5");
  }
  WARPLINE_TRY(const std::uint64_t number, value.number(0, UINT16_MAX));
  return static_cast<std::uint16_t>(number);
}

Result<void> set_inline_most(const Value& value, Devargs& args) {
  WARPLINE_TRY(args.reads_sent.bytes, inline_setting(value, args));
  return {};
}

Result<void> set_inline_queues(const Value& value, Devargs& args) {
  WARPLINE_TRY(args.reads_sent.from_queues, inline_setting(value, args));
  return {};
}

/// The first of all keys: every other one overrides what the persona brings.
Result<void> take_persona(const Value& /*value*/, Devargs& /*args*/) { return {}; }

struct Key {
  std::string_view name;
  Result<void> (*set)(const Value&, Devargs&);
};
constexpr std::string_view kPersona = "persona";
constexpr Key kKeys[] = {{kPersona, take_persona},
                         {"wire", set_wire},
                         {"engine", set_engine},
                         {"cpu", set_cpu},
                         {"size", set_size},
                         {"flows", set_flows},
                         {"step", set_step},
                         {"pcap", set_pcap},
                         {"buffer", set_buffer},
                         {"queues", set_queues},
                         {"fast_free", set_fast_free},
                         {"refill", set_refill},
                         {"rx_align", set_rx_align},
                         {"rx_buffer_unit", set_rx_buffer_unit},
                         {"link_up_after", set_link_up_after},
                         {"txq_inline_max", set_inline_most},
                         {"txqs_inline", set_inline_queues},
                         {"seed", set_seed}};

Error unknown_key(std::string_view key) {
  std::vector<std::string> known;
  for (const Key& own : kKeys) known.emplace_back(own.name);
  std::ranges::copy(fault_keys(), std::back_inserter(known));
  return usage_error(fmt::format("there is no '{}'", key), fmt::format("did you mean '{}'?", nearest(key, known)),
                     fmt::format("there are {}", fmt::join(known, ", ")));
}

/// `rate=` of a source or a static wire: of the frames that come in; of any other wire it is a fault.
Result<void> set_supply_rate(std::string_view text, Devargs& args) {
  WARPLINE_TRY(const Rate rate, parse_rate(text));
  args.packets_per_s = 0;
  if (const auto* packets = std::get_if<PacketRate>(&rate)) args.packets_per_s = packets->value;
  if (const auto* bits = std::get_if<BitRate>(&rate)) {
    args.packets_per_s = bits->value / (8.0 * static_cast<double>(args.size + kLayer1Overhead));
  }
  return {};
}

Result<void> set(const Value& value, Devargs& args, std::string_view& rate) {
  if (value.key == "rate") {
    rate = value.text;
    return {};
  }
  const auto* const own = std::ranges::find(kKeys, value.key, &Key::name);
  if (own != std::end(kKeys)) return own->set(value, args);
  if (is_fault_key(value.key)) return set_fault(args.faults, value.key, value.text);
  return unknown_key(value.key);
}

Result<std::vector<Value>> items_of(std::string_view text) {
  std::vector<Value> items;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view item = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (item.empty()) continue;
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) {
      return usage_error(fmt::format("'{}' has no value", item), "a port takes key=value, divided by commas");
    }
    items.push_back({item.substr(0, equals), item.substr(equals + 1)});
  }
  return items;
}

Result<Devargs> persona_among(const std::vector<Value>& items) {
  const Persona* persona = find_persona("");
  for (const Value& item : items) {
    if (item.key != kPersona) continue;
    persona = find_persona(item.text);
    if (persona != nullptr && !item.text.empty()) continue;
    std::vector<std::string_view> names;
    for (const Persona& known : personas().subspan(1)) names.push_back(known.name);
    return item.refuse("there is no such persona", fmt::format("there are {}", fmt::join(names, ", ")));
  }
  return Devargs(*persona);
}

Result<void> parse(std::string_view text, Devargs& args) {
  WARPLINE_TRY(const std::vector<Value> items, items_of(text));
  WARPLINE_TRY(args, persona_among(items));
  std::string_view rate;
  for (const Value& item : items) WARPLINE_CHECK(set(item, args, rate));
  if (!args.pcap.empty() && args.wire != WireKind::source) {
    return usage_error(fmt::format("cannot replay {}", args.pcap), "only a source does", "add wire=source");
  }
  const bool supplies = args.wire == WireKind::source || args.wire == WireKind::fixed;
  if (args.step != 1 && (!supplies || rate.data() == nullptr)) {
    return usage_error("cannot step", "only the rate of a source or a static wire does", "add wire=source,rate=1Mpps");
  }
  // Whose rate it is, and in frames of which size, is known when all has been read.
  if (rate.data() == nullptr) return {};
  return supplies ? set_supply_rate(rate, args) : set_fault(args.faults, "rate", rate);
}

}  // namespace

Devargs::Devargs(const Persona& whose)
    : persona(&whose),
      rx_queues(whose.rx_queues),
      tx_queues(whose.tx_queues),
      fast_free((whose.tx_offloads & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE) != 0),
      rx_align(whose.rx_align),
      rx_buffer_unit(whose.rx_buffer_unit),
      link_up_after(whose.link_up_after),
      reads_sent(whose.reads_sent) {}

int parse_devargs(const char* text, Devargs& args) {
  try {
    Devargs parsed;
    const Result<void> result = parse(text == nullptr ? "" : text, parsed);
    if (!result.ok()) {
      log_error("%s", result.error().message().c_str());
      return -EINVAL;
    }
    args = std::move(parsed);
    return 0;
  } catch (const std::exception& error) {
    log_error("cannot read the arguments: %s", error.what());
    return -ENOMEM;
  }
}

}  // namespace warpline::vnic
