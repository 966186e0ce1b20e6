// SPDX-License-Identifier: Apache-2.0
#include "copies/copy_rig.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "warpline/base/random.h"
#include "warpline/gpu/memory/copy_batch.h"

namespace warpline::copies {
namespace {

double nanos_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
}

/// The compiler may not find out that nobody reads what was copied.
void keep(const std::byte* bytes) { asm volatile("" : : "r"(bytes) : "memory"); }

/// Makes each copy of a case by `copy(to, from)` until one fails.
template <typename Copy>
Result<void> each(const CopyCase& copies, std::byte* to, const std::byte* from, Copy copy) {
  for (std::size_t at = 0; at < copies.bytes(); at += copies.size) WARPLINE_CHECK(copy(to + at, from + at));
  return {};
}

}  // namespace

Result<CopyRig> CopyRig::create(std::size_t most, bool with_gpu) {
  CopyRig rig;
  for (std::vector<std::byte>* memory : {&rig.sent_, &rig.from_, &rig.to_}) memory->resize(most);
  if (!with_gpu) return rig;
  WARPLINE_TRY(gpu::PinnedBuffer pinned, gpu::PinnedBuffer::create(Bytes{most}));
  WARPLINE_TRY(gpu::PinnedBuffer look, gpu::PinnedBuffer::create(Bytes{most}));
  WARPLINE_TRY(gpu::DeviceBuffer device, gpu::DeviceBuffer::create(Bytes{most}));
  std::vector<gpu::CudaStream> streams;
  while (streams.size() < kStreams) {
    WARPLINE_TRY(gpu::CudaStream stream, gpu::CudaStream::create());
    streams.push_back(std::move(stream));
  }
  rig.gpu_.emplace(OnGpu{std::move(pinned), std::move(look), std::move(device), std::move(streams)});
  return rig;
}

CopyRig::Ends CopyRig::ends_of(const CopyCase& copies) {
  if (copies.kind == CopyKind::host_memcpy) return {from_.data(), to_.data()};
  const bool pageable = copies.kind == CopyKind::pageable;
  if (copies.direction == CopyDirection::to_gpu)
    return {pageable ? from_.data() : gpu_->pinned.data(), gpu_->device.data()};
  return {gpu_->device.data(), pageable ? to_.data() : gpu_->pinned.data()};
}

Result<void> CopyRig::fill(const CopyCase& copies, const Ends& ends) {
  Random random(++seed_);
  for (std::size_t at = 0; at < copies.bytes(); at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random.next();
    std::memcpy(sent_.data() + at, &word, sizeof(word));
  }
  if (ends.from == from_.data() || (gpu_ && ends.from == gpu_->pinned.data())) {
    std::memcpy(ends.from, sent_.data(), copies.bytes());
    return {};
  }
  std::memcpy(gpu_->look.data(), sent_.data(), copies.bytes());
  return gpu::copy_now(ends.from, gpu_->look.data(), copies.bytes());
}

Result<bool> CopyRig::same(const CopyCase& copies, const Ends& ends) {
  const std::byte* arrived = ends.to;
  if (gpu_ && ends.to == gpu_->device.data()) {
    WARPLINE_CHECK(gpu::copy_now(gpu_->look.data(), ends.to, copies.bytes()));
    arrived = gpu_->look.data();
  }
  return std::memcmp(arrived, sent_.data(), copies.bytes()) == 0;
}

Result<std::vector<double>> CopyRig::time(const CopyCase& copies, std::size_t runs) {
  const Ends ends = ends_of(copies);
  WARPLINE_CHECK(fill(copies, ends));
  gpu::CopyBatch batch;
  if (copies.kind == CopyKind::batch) {
    for (std::size_t at = 0; at < copies.bytes(); at += copies.size)
      batch.add(ends.to + at, ends.from + at, copies.size);
  }
  const auto run = [&]() -> Result<void> {
    const auto synchronous = [&](std::byte* to, const std::byte* from) { return gpu::copy_now(to, from, copies.size); };
    std::size_t turn = 0;
    const std::size_t streams = copies.kind == CopyKind::streams ? kStreams : 1;
    const auto queued = [&](std::byte* to, const std::byte* from) {
      return gpu_->streams[turn++ % streams].copy(to, from, copies.size);
    };
    switch (copies.kind) {
      case CopyKind::host_memcpy:
        for (std::size_t at = 0; at < copies.bytes(); at += copies.size) {
          std::memcpy(ends.to + at, ends.from + at, copies.size);
          keep(ends.to);
        }
        return {};
      case CopyKind::pageable:
      case CopyKind::pinned:
        return each(copies, ends.to, ends.from, synchronous);
      case CopyKind::stream:
      case CopyKind::stream_again:
      case CopyKind::streams:
        WARPLINE_CHECK(each(copies, ends.to, ends.from, queued));
        break;
      case CopyKind::batch:
        WARPLINE_CHECK(batch.submit(gpu_->streams.front()));
        break;
    }
    for (std::size_t i = 0; i < streams; ++i) WARPLINE_CHECK(gpu_->streams[i].wait());
    return {};
  };
  std::vector<double> nanos;
  while (nanos.size() < runs) {
    const auto begin = std::chrono::steady_clock::now();
    WARPLINE_CHECK(run());
    nanos.push_back(nanos_since(begin));
  }
  WARPLINE_TRY(const bool arrived, same(copies, ends));
  if (arrived) return nanos;
  return Error{ErrorKind::verification,
               fmt::format("{} copies of {} bytes, {}, {}", copies.count, copies.size, name(copies.kind),
                           name(copies.direction)),
               "what arrived is not what was sent", "test the GPU's memory and its slot"};
}

}  // namespace warpline::copies
