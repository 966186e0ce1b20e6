// SPDX-License-Identifier: Apache-2.0
#include "warpline/ingest/consumers/pattern_memory.h"

#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include "warpline/gpu/cuda_stream.h"
#include "warpline/gpu/device.h"

namespace warpline::ingest {
namespace {

static_assert(std::is_trivially_copyable_v<PatternSource>);
static_assert(std::is_trivially_destructible_v<PatternSource>);

constexpr std::size_t kAlignment = 256;
constexpr std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// Where each part lies, in bytes from the begin: the source itself first.
struct Places {
  std::size_t templates;
  std::size_t pattern;
  std::size_t sums;
  std::size_t arrivals;
  std::size_t end;
};

Places places_for(const traffic::TrafficPlan& plan, const PatternMemory::Options& options) {
  Places places{};
  places.templates = aligned(sizeof(PatternSource));
  places.pattern = places.templates + aligned(plan.template_count() * sizeof(traffic::HeaderTemplate));
  places.sums = places.pattern + aligned(traffic::FramePattern::kPatternBytes);
  places.arrivals = places.sums + aligned(traffic::FramePattern::kPatternSums * sizeof(std::uint32_t));
  places.end = places.arrivals + (options.finds_duplicates ? ArrivalTable::bytes(options.streams) : 0);
  return places;
}

}  // namespace

void PatternMemory::FreeAligned::operator()(std::byte* memory) const {
  operator delete[](memory, std::align_val_t{kAlignment});
}

Result<std::unique_ptr<PatternMemory>> PatternMemory::create(const traffic::TrafficPlan& plan, const Options& options) {
  const Places places = places_for(plan, options);
  std::unique_ptr<PatternMemory> memory(new PatternMemory);
  memory->host_.reset(new (std::align_val_t{kAlignment}, std::nothrow) std::byte[places.end]());
  std::byte* const host = memory->host_.get();
  if (host == nullptr) {
    return environment_error("memory for what packets are compared with", "there is not enough", "free some memory");
  }
  std::byte* base = host;
  if (options.gpu) {
    WARPLINE_CHECK(gpu::use_gpu(*options.gpu));
    WARPLINE_TRY(memory->device_, gpu::DeviceBuffer::create(Bytes{places.end}));
    base = memory->device_->data();
  }
  const traffic::FramePattern::Tables& from = plan.tables();
  std::memcpy(host + places.templates, from.templates, plan.template_count() * sizeof(traffic::HeaderTemplate));
  std::memcpy(host + places.pattern, from.pattern, traffic::FramePattern::kPatternBytes);
  std::memcpy(host + places.sums, from.sums, traffic::FramePattern::kPatternSums * sizeof(std::uint32_t));
  const traffic::FramePattern::Tables tables{reinterpret_cast<const traffic::HeaderTemplate*>(base + places.templates),
                                             reinterpret_cast<const std::uint8_t*>(base + places.pattern),
                                             reinterpret_cast<const std::uint32_t*>(base + places.sums)};
  auto* const rounds = options.finds_duplicates ? reinterpret_cast<std::uint32_t*>(base + places.arrivals) : nullptr;
  new (host) PatternSource{plan.with(tables), {rounds, options.streams}, options.streams, options.started};
  memory->source_ = reinterpret_cast<const PatternSource*>(base);
  if (memory->device_) {
    WARPLINE_TRY(const gpu::CudaStream stream, gpu::CudaStream::create());
    WARPLINE_CHECK(stream.copy(base, host, places.end));
    WARPLINE_CHECK(stream.wait());
  }
  return memory;
}

}  // namespace warpline::ingest
