// SPDX-License-Identifier: Apache-2.0
#include "warpline/report/recycle_totals.h"

#include <fmt/format.h>

#include <map>

namespace warpline::report {
namespace {

constexpr std::string_view kRefused = "recycle_refused_";

std::string port_name(std::span<const port::Port> ports, std::uint16_t id) {
  for (const port::Port& port : ports) {
    if (port.id() == id) return port.name();
  }
  return fmt::format("{}", id);
}

}  // namespace

RecycleTotals recycle_totals(memory::RecycleWay way, const memory::Recycling& recycling,
                             std::span<const port::Port> ports) {
  RecycleTotals totals;
  totals.way = name(way);
  totals.recycled = recycling.recycled().value_or(0);
  std::map<std::string, std::uint64_t> refused;
  for (const port::Port& port : ports) {
    for (const auto& [counter, count] : port.extended_counters()) {
      if (counter == "mempool_gets") totals.mempool_gets = totals.mempool_gets.value_or(0) + count;
      if (counter == "mempool_puts") totals.mempool_puts = totals.mempool_puts.value_or(0) + count;
      if (counter.starts_with(kRefused) && count != 0) refused[counter.substr(kRefused.size())] += count;
    }
  }
  totals.refused.assign(refused.begin(), refused.end());
  for (const auto& lcore : recycling.lcores) {
    if (lcore == nullptr) continue;
    for (const memory::Recycler::Link& link : lcore->links()) {
      totals.links.push_back(fmt::format("{} tx {} to {} rx {}", port_name(ports, link.tx.port), link.tx.queue,
                                         port_name(ports, link.rx.port), link.rx.queue));
    }
  }
  return totals;
}

std::optional<std::string> nothing_recycled(memory::RecycleWay way, const RecycleTotals& totals,
                                            std::uint64_t packets) {
  if ((way != memory::RecycleWay::direct && way != memory::RecycleWay::automatic) || totals.recycled != 0 ||
      packets == 0) {
    return std::nullopt;
  }
  return fmt::format("--recycle {}: of {} packets, no buffer went from a transmit ring to a receive ring; {}",
                     name(way), packets,
                     totals.links.empty() ? "nothing is linked" : "what is linked never had a whole batch");
}

std::string RecycleTotals::to_text() const {
  std::string text = fmt::format("{:>16} buffers, {}", recycled, way);
  if (mempool_gets && mempool_puts) {
    text += fmt::format("; drivers took {} from pools and put {} back", *mempool_gets, *mempool_puts);
  }
  for (const auto& [reason, count] : refused) text += fmt::format("; refused: {} {}", reason, count);
  for (const std::string& link : links) text += fmt::format("\n    {}", link);
  return text;
}

nlohmann::ordered_json to_json(const RecycleTotals& recycle) {
  nlohmann::ordered_json json = {{"way", recycle.way}, {"recycled", recycle.recycled}};
  json["refused"] = nlohmann::ordered_json::object();
  for (const auto& [reason, count] : recycle.refused) json["refused"][reason] = count;
  if (recycle.mempool_gets) json["mempool_gets"] = *recycle.mempool_gets;
  if (recycle.mempool_puts) json["mempool_puts"] = *recycle.mempool_puts;
  json["links"] = recycle.links;
  return json;
}

}  // namespace warpline::report
