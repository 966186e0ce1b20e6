// SPDX-License-Identifier: Apache-2.0
#include "warpline/ingest/batch_slots.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

namespace warpline::ingest {
namespace {

constexpr std::size_t kPage = 4096;

struct FreePages {
  void operator()(std::byte* pages) const { std::free(pages); }
};
using Pages = std::unique_ptr<std::byte, FreePages>;

Pages take_pages(std::uint64_t bytes) {
  Pages pages(static_cast<std::byte*>(std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage)));
  if (pages) std::memset(pages.get(), 0, bytes);
  return pages;
}

/// Both places in host memory: what the GPU's copies do, the CPU does at once.
class HostSlots final : public BatchSlots {
 public:
  HostSlots(const BatchSlotsShape& shape, Pages staging, Pages places)
      : BatchSlots(shape), staging_pages_(std::move(staging)), place_pages_(std::move(places)) {
    staging_ = staging_pages_.get();
    places_ = place_pages_.get();
  }

  bool submit(std::uint64_t slot, std::size_t bytes, std::uint64_t /*word*/) override {
    std::memcpy(place(slot), staging(slot), bytes);
    if (shape_.naive) std::memset(staging(slot), 0, shape_.slot_bytes);
    return true;
  }

 private:
  Pages staging_pages_;
  Pages place_pages_;
};

}  // namespace

Result<std::uint32_t> slots_within(Bytes budget, std::uint64_t slot_bytes, std::uint32_t most) {
  const std::uint64_t fitting = budget.value / std::max<std::uint64_t>(slot_bytes, 1);
  if (fitting < 2) {
    return usage_error(fmt::format("cannot receive into {} bytes of memory per queue", budget.value),
                       fmt::format("one batch takes {}, and while one is read the next comes", slot_bytes),
                       "use a larger --gpu-memory, a smaller --batch or a smaller --mtu");
  }
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(std::bit_floor(fitting), most));
}

Result<std::unique_ptr<BatchSlots>> BatchSlots::create(const BatchSlotsShape& shape) {
  if (shape.gpu) return create_gpu_slots(shape);
  const std::uint64_t bytes = shape.slots * shape.slot_bytes;
  Pages staging = take_pages(bytes);
  Pages places = take_pages(bytes);
  if (!staging || !places) {
    return environment_error(fmt::format("{} bytes for batches", 2 * bytes), "there is not enough memory",
                             "use a smaller --gpu-memory or --batch");
  }
  return {std::make_unique<HostSlots>(shape, std::move(staging), std::move(places))};
}

}  // namespace warpline::ingest
