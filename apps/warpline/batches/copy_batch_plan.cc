// SPDX-License-Identifier: Apache-2.0
#include "batches/copy_batch_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <span>
#include <string_view>
#include <utility>

#include "config/table_rows.h"
#include "warpline/ingest/batch_slots.h"
#include "warpline/ingest/ingest_settings.h"

namespace warpline::batches {
namespace {

using ingest::IngestPath;

constexpr std::uint16_t kSizes[] = {64, 128, 256, 512, 1024, 1514};
constexpr std::string_view kBatches[] = {"32",   "64",   "128",  "256",   "512",   "1024",
                                         "2048", "4096", "8192", "16384", "32768", "adaptive"};
constexpr IngestPath kPaths[] = {IngestPath::copy, IngestPath::zerocopy, IngestPath::copy_naive};
constexpr EngineKind kGpuEngines[] = {EngineKind::persistent, EngineKind::launch, EngineKind::graph};
constexpr EngineKind kHostEngines[] = {EngineKind::inline_, EngineKind::thread};
constexpr std::uint32_t kLeastMtu = 68;  // RFC 791
constexpr std::uint32_t kEthernetHeader = 14;
constexpr std::uint64_t kSlots = 4;                // of the largest batches
constexpr std::uint64_t kLeastBudget = 16U << 20;  // GPU memory of a queue, bytes

/// What the study of 2020 received, in thousands of packets per second (its batch_size_test.xlsx).
struct Published {
  std::uint32_t size;
  std::string_view batch;
  double launch;
  double polling;
};
constexpr Published kPublished[] = {
    {64, "32", 1273, 1943},   {64, "64", 2354, 3876},     {64, "128", 4140, 7740},    {64, "256", 6410, 10310},
    {64, "512", 8220, 10680}, {64, "1024", 10600, 13380}, {64, "2048", 11900, 13390}, {64, "32768", 12550, 12770},
    {128, "32", 1260, 1947},  {256, "32", 1219, 1942},    {512, "32", 1116, 1934},    {1024, "32", 804, 1190},
    {1514, "32", 703, 815},
};
constexpr double kPublishedOffered = 13'900;  // of 64-byte frames; of larger ones line rate

/// Returns the rate of 10 GbE: with each frame go 8 bytes of preamble and 12 of gap, its checksum is counted in it.
double line_rate_mpps(std::uint32_t size) { return 10e9 / 8 / (size + 20) / 1e6; }

std::uint32_t mtu_of(std::uint32_t size) { return std::max(kLeastMtu, size - kEthernetHeader); }

CopyBatchRow make_row(std::uint32_t size, std::string_view batch) {
  CopyBatchRow row{.size = size,
                   .batch = std::string(batch),
                   .offered_mpps = line_rate_mpps(size),
                   .cells = {},
                   .launch = {},
                   .polling = {}};
  for (const Published& known : kPublished) {
    if (known.size != size || known.batch != batch) continue;
    const double offered = size == 64 ? kPublishedOffered : 1e3 * line_rate_mpps(size);
    row.launch = std::min(1.0, known.launch / offered);
    row.polling = std::min(1.0, known.polling / offered);
  }
  return row;
}

/// Returns the packets of a batch at most.
std::uint16_t most_of(std::string_view batch) {
  std::uint16_t packets = ingest::kLargestLentBatch;
  std::from_chars(batch.data(), batch.data() + batch.size(), packets);
  return packets;
}

std::vector<std::string> arguments_of(const config::BenchConfig& bench, const CopyBatchRow& row, IngestPath path,
                                      EngineKind engine) {
  const std::uint32_t mtu = mtu_of(row.size);
  const std::uint64_t batch = ingest::batch_bytes(most_of(row.batch), static_cast<std::uint16_t>(mtu));
  const std::string pipelines = std::to_string(std::max<std::uint16_t>(bench.pipelines, 1));
  std::vector<std::string> arguments = {
      "ingest",
      "--port",
      fmt::format("net_vnic0,wire=static,size={},rate={:.0f}pps", row.size, row.offered_mpps * 1e6),
      "--size",
      std::to_string(row.size),
      "--mtu",
      std::to_string(mtu),
      "--verify",
      "--path",
      std::string(name(path)),
      "--engine",
      std::string(name(engine)),
      "--batch",
      row.batch,
      "--pipelines",
      pipelines,
      "--gpu-memory",
      std::to_string(std::max(kLeastBudget, kSlots * batch) * std::max<std::uint16_t>(bench.pipelines, 1)),
      "--seconds",
      fmt::format("{}ns", bench.seconds.value),
      "--interval",
      "3600s",
      "--json"};
  // The study submits full batches alone.
  if (row.batch != "adaptive") arguments.insert(arguments.end(), {"--deadline", "1s"});
  if (runs_on_gpu(engine)) arguments.insert(arguments.end(), {"--gpu", std::to_string(bench.gpu)});
  return arguments;
}

Result<void> refuse_what_others_have(const config::BenchConfig& bench) {
  if (bench.rows.empty() && bench.only.empty() && bench.ways.empty() && bench.packets == 0 && !bench.keep_disturbed) {
    return {};
  }
  return usage_error("cannot use --rows, --only, --ways, --packets or --keep-disturbed",
                     "copy-batch has sizes, batches, paths and engines", "use --size, --batch, --path or --engine");
}

Result<std::vector<EngineKind>> engines_of(bool with_gpu, std::optional<EngineKind> engine) {
  const std::span<const EngineKind> all = with_gpu ? std::span<const EngineKind>(kGpuEngines) : kHostEngines;
  if (!engine) return std::vector<EngineKind>(all.begin(), all.end());
  if (runs_on_gpu(*engine) && !with_gpu) {
    return environment_error(fmt::format("--engine {}", name(*engine)), "there is no GPU to run it",
                             "use --engine inline or thread, or leave it out");
  }
  return std::vector<EngineKind>{*engine};
}

}  // namespace

Result<CopyBatchPlan> plan_copy_batch(const config::BenchConfig& bench, bool with_gpu,
                                      std::optional<EngineKind> engine) {
  constexpr const char* kNoSuch = "copy-batch has no such row or column";
  WARPLINE_CHECK(refuse_what_others_have(bench));
  WARPLINE_TRY(const auto engines, engines_of(with_gpu, engine));
  WARPLINE_TRY(const auto sizes, config::rows_of<std::uint16_t>("size", kSizes, bench.sizes, kNoSuch));
  const std::vector<std::string> known(std::begin(kBatches), std::end(kBatches));
  WARPLINE_TRY(const auto batches, config::rows_of<std::string>("batch", known, bench.batches, kNoSuch));
  std::vector<std::string> names;
  for (const IngestPath path : kPaths) names.emplace_back(name(path));
  WARPLINE_TRY(const auto paths, config::rows_of<std::string>("path", names, bench.paths, kNoSuch));

  CopyBatchPlan plan;
  for (const std::uint16_t size : sizes) {
    for (const std::string& batch : batches) plan.rows.push_back(make_row(size, batch));
  }
  for (const IngestPath path : kPaths) {
    if (std::ranges::find(paths, name(path)) == paths.end()) continue;
    for (const EngineKind one : engines) {
      const std::string column = fmt::format("{}, {}", name(path), name(one));
      plan.columns.push_back(column);
      for (CopyBatchRow& row : plan.rows) {
        if (!ingest::copies(path) && most_of(row.batch) > ingest::kLargestLentBatch) continue;
        row.cells.push_back({column, arguments_of(bench, row, path, one)});
      }
    }
  }
  return plan;
}

}  // namespace warpline::batches
