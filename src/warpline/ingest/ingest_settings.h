// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "warpline/base/enum_names.h"
#include "warpline/base/kinds.h"
#include "warpline/base/result.h"
#include "warpline/base/units.h"
#include "warpline/datapath/forward_settings.h"
#include "warpline/memory/pool_settings.h"

namespace warpline::ingest {

/// `IngestPath` is how packets get to where the consumer reads them.
enum class IngestPath : std::uint8_t {
  copy,        ///< gathered into pinned memory, then one asynchronous copy per batch
  zerocopy,    ///< not at all: the consumer reads the mbufs, which a GPU reaches because they are pinned
  device,      ///< the NIC writes them into GPU memory
  copy_naive,  ///< pageable memory and two synchronous copies per batch: a baseline
};
constexpr auto names_of(IngestPath) { return enum_names<IngestPath>({"copy", "zerocopy", "device", "copy-naive"}); }

/// Returns whether the consumer reads copies of the packets, not the buffers that they were received into.
[[nodiscard]] constexpr bool copies(IngestPath path) {
  return path == IngestPath::copy || path == IngestPath::copy_naive;
}

/// Returns where ports receive into for a path, with a consumer on a GPU or on the host.
[[nodiscard]] constexpr memory::MemoryKind pool_memory(IngestPath path, bool on_gpu) {
  if (!on_gpu || copies(path)) return memory::MemoryKind::host;
  return path == IngestPath::device ? memory::MemoryKind::device : memory::MemoryKind::pinned;
}

/// `ConsumerKind` is what is done with each packet.
enum class ConsumerKind : std::uint8_t {
  automatic,  ///< verify where the program makes the traffic or --verify is given, else sum
  verify,     ///< compares every byte with what the generator sends, and finds duplicates
  sum,        ///< counts packets and bytes, and sums all bytes
  user,       ///< the functor of the header that the build names
};
constexpr auto names_of(ConsumerKind) { return enum_names<ConsumerKind>({"auto", "verify", "sum", "user"}); }

/// `IngestSettings` has what `ingest` is set beyond DatapathSettings.
struct IngestSettings {
  IngestPath path = IngestPath::copy;
  ConsumerKind consumer = ConsumerKind::automatic;
  std::optional<EngineKind> engine{};          ///< unset: persistent with a GPU, else inline
  std::optional<memory::MemoryKind> memory{};  ///< where the consumer finds packets; unset: by path and engine
  std::optional<Bytes> gpu_memory{};           ///< budget of all queues and their frames; unset: kDefaultBudget each
  bool adaptive = false;                       ///< batches close by what the consumer was measured to take
  bool transmit = false;                       ///< packets that the consumer passes leave again
  std::string frame{};  ///< packets become frames, as parse_frame_description() has it; empty: they do not
  Nanos frame_timeout{1'000'000'000};  ///< frames of a stream without packets for so long are handed over; 0: never
  std::string faults{};                ///< of a loopback's far side, as net_vnic's devargs name them
  bool operator==(const IngestSettings&) const = default;
};

/// Decides what the settings of an ingest run leave open: in `datapath` the engine (that of `ingest`, if it is set),
/// the packet pools' memory, the burst, the model, the workload and recycling. Pure. Returns a usage error if
/// engine, path and memory exclude each other.
[[nodiscard]] Result<void> resolve(const IngestSettings& ingest, datapath::DatapathSettings& datapath);

/// Returns the maximum packets of a batch: of copies as many as a ready word counts in whole powers of two, of buffers
/// that stay with the consumer as many as a loop handles at once.
inline constexpr std::uint16_t kLargestCopiedBatch = 32'768;
inline constexpr std::uint16_t kLargestLentBatch = 512;

/// `kDefaultBudget` is the budget of one queue.
inline constexpr Bytes kDefaultBudget{64U << 20};

/// `BudgetShare` is one path's share of the budget.
struct BudgetShare {
  Bytes packets;  ///< with the consumer
  Bytes frames;   ///< that packets become, with all that assembles them: half of the budget, or nothing
};
[[nodiscard]] inline BudgetShare share_of_budget(const IngestSettings& settings, std::uint64_t paths) {
  const std::uint64_t all = settings.gpu_memory ? settings.gpu_memory->value / paths : kDefaultBudget.value;
  const std::uint64_t frames = settings.frame.empty() ? 0 : all / 2;
  return {.packets = {all - frames}, .frames = {frames}};
}

}  // namespace warpline::ingest
