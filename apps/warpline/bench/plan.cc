// SPDX-License-Identifier: Apache-2.0
#include "bench/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <set>
#include <string_view>
#include <utility>

#include "config/table_rows.h"

namespace warpline::bench {
namespace {

constexpr std::uint32_t kEthernetHeader = 14;
constexpr std::uint32_t kStandardFrame = 1514;
constexpr std::uint16_t kMostPipelines = 4;  // as l2fwd-nv's published runs
constexpr std::uint16_t kBurst = 64;

constexpr std::string_view kSizeTitle = "forwarding by frame size and where packets are";
constexpr std::string_view kBurstTitle = "forwarding by burst and engine";
// README of github.com/NVIDIA/l2fwd-nv at 3ef308b: ConnectX-6 Dx at 100 GbE and A100 behind one PCIe switch.
constexpr std::string_view kSource =
    "l2fwd-nv's README (2022): A100, ConnectX-6 Dx, 100 GbE, whose line rate bounds its figures; no latency is given";

struct Column {
  std::string_view name;
  std::string_view engine;
  std::string_view memory;
  std::string_view workload;
  [[nodiscard]] bool on_gpu() const { return engine != "inline"; }
};
constexpr Column kSizeColumns[] = {{"host", "inline", "host", "mac-swap"},
                                   {"pinned", "persistent", "pinned", "mac-swap"},
                                   {"device", "persistent", "device", "mac-swap"},
                                   {"I/O only", "inline", "host", "none"}};
constexpr Column kBurstColumns[] = {{"inline", "inline", "host", "mac-swap"},
                                    {"launch", "launch", "pinned", "mac-swap"},
                                    {"graph", "graph", "pinned", "mac-swap"},
                                    {"persistent", "persistent", "pinned", "mac-swap"}};

using Published = std::vector<std::optional<double>>;

Published published_by_size(std::uint32_t size) {
  constexpr std::pair<std::uint32_t, double> kIoOnly[] = {{64, 19}, {128, 37}, {256, 67}, {512, 95}, {1024, 97}};
  const auto* const found = std::ranges::find(kIoOnly, size, &std::pair<std::uint32_t, double>::first);
  return {found == std::end(kIoOnly) ? std::nullopt : std::optional(found->second)};
}

/// At 1 KiB: a kernel a burst, graphs, the persistent kernel.
Published published_by_burst(std::uint32_t size, std::uint16_t burst) {
  if (size != 1024) return {std::nullopt, std::nullopt, std::nullopt};
  switch (burst) {
    case 16:
      return {23, 30, 50};
    case 32:
      return {49, 85, 97};
    case 64:
    case 128:
      return {97, 97, 97};
    default:
      return {std::nullopt, std::nullopt, std::nullopt};
  }
}

/// Returns the port spec. Frames in GPU memory are copied, so the software NIC must hold a transmit ring of them; other
/// frames stay in place.
std::string static_wire(const Column& column, std::uint32_t size) {
  const std::uint32_t ring = port::PortSettings{}.tx_ring;
  std::string spec = fmt::format("net_vnic0,wire=static,size={}", size);
  if (column.memory == "device") spec += fmt::format(",buffer={}", std::bit_ceil(2 * ring * size));
  return spec;
}

BenchCell make_cell(const Column& column, const BenchRow& row, const config::BenchConfig& bench,
                    std::uint16_t pipelines) {
  const std::string seconds = fmt::format("{}ns", bench.seconds.value);
  std::vector<std::string> common = {"--engine",    std::string(column.engine),
                                     "--memory",    std::string(column.memory),
                                     "--workload",  std::string(column.workload),
                                     "--burst",     std::to_string(row.burst),
                                     "--pipelines", std::to_string(pipelines),
                                     "--seconds",   seconds,
                                     "--interval",  "3600s",
                                     "--json"};
  if (column.on_gpu()) common.insert(common.end(), {"--gpu", std::to_string(bench.gpu)});
  if (row.size > kStandardFrame) common.insert(common.end(), {"--mtu", std::to_string(row.size - kEthernetHeader)});
  BenchCell cell{std::string(column.name), column.on_gpu(), {}, {}};
  cell.timed = {"forward", "--port", static_wire(column, row.size)};
  cell.verified = {"forward", "--loopback", "--verify", "--size", std::to_string(row.size)};
  for (auto* words : {&cell.timed, &cell.verified}) words->insert(words->end(), common.begin(), common.end());
  return cell;
}

BenchPlan size_plan() {
  BenchPlan plan{"forward-size", std::string(kSizeTitle), 1, {}, {"l2fwd-nv, I/O only"}, std::string(kSource), {}};
  for (const std::uint32_t size : {64U, 128U, 256U, 512U, 1024U, 1514U, 8192U}) {
    plan.rows.push_back({size, kBurst, {}, published_by_size(size)});
  }
  return plan;
}

BenchPlan burst_plan() {
  BenchPlan plan{"forward-burst",
                 std::string(kBurstTitle),
                 1,
                 {},
                 {"l2fwd-nv, kernel", "l2fwd-nv, graphs", "l2fwd-nv, persistent"},
                 std::string(kSource),
                 {}};
  for (const std::uint32_t size : {1024U, 64U}) {
    for (const std::uint16_t burst : {16, 32, 64, 128, 256}) {
      plan.rows.push_back({size, burst, {}, published_by_burst(size, burst)});
    }
  }
  return plan;
}

/// Leaves the rows that are asked for.
Result<void> choose_rows(BenchPlan& plan, const std::vector<std::uint16_t>& wanted, bool by_size) {
  if (wanted.empty()) return {};
  const auto key = [&](const BenchRow& row) -> std::uint32_t { return by_size ? row.size : row.burst; };
  std::set<std::uint32_t> known;
  for (const BenchRow& row : plan.rows) known.insert(key(row));
  WARPLINE_CHECK(config::refuse_unknown("rows", known, wanted, fmt::format("{} has no such row", plan.name)));
  std::erase_if(plan.rows, [&](const BenchRow& row) { return std::ranges::find(wanted, key(row)) == wanted.end(); });
  return {};
}

}  // namespace

Result<BenchPlan> plan_bench(const config::BenchConfig& bench, unsigned cpus, bool with_gpu) {
  if (!bench.only.empty() || !bench.ways.empty() || bench.packets != 0 || bench.keep_disturbed) {
    return usage_error("cannot use --only, --ways, --packets or --keep-disturbed",
                       fmt::format("{} has rows and runs for seconds", bench.name), "use --rows and --seconds");
  }
  const bool by_size = bench.name == "forward-size";
  BenchPlan plan = by_size ? size_plan() : burst_plan();
  WARPLINE_CHECK(choose_rows(plan, bench.rows, by_size));
  // A pipeline takes two cores, and the main thread needs one.
  const unsigned fit = std::clamp(cpus > 1 ? (cpus - 1) / 2 : 1U, 1U, unsigned{kMostPipelines});
  plan.pipelines = bench.pipelines != 0 ? bench.pipelines : static_cast<std::uint16_t>(fit);
  for (const Column& column : by_size ? kSizeColumns : kBurstColumns) {
    if (column.on_gpu() && !with_gpu) continue;
    plan.columns.emplace_back(column.name);
    for (BenchRow& row : plan.rows) row.cells.push_back(make_cell(column, row, bench, plan.pipelines));
  }
  return plan;
}

std::vector<std::pair<std::string, std::string>> list_benches() {
  return {{"forward-size", std::string(kSizeTitle)},
          {"forward-burst", std::string(kBurstTitle)},
          {"adaptive", "batches that adapt beside fixed ones, by load"},
          {"copy-batch", "packets received into GPU memory, by their size and the batch that they are copied in"},
          {"memcpy", "copies between host and GPU memory, by their number and by their size"},
          {"rate", "the highest rate without loss of a command (--of), by repeated trials: MLRsearch, RFC 9971"},
          {"recycle", "how sent buffers come back: cycles a packet by way, one factor at a time"},
          {"stream-chunk", "TCP streams sent in chunks of which each is acknowledged before the next"}};
}

}  // namespace warpline::bench
