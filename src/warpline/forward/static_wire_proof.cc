// SPDX-License-Identifier: Apache-2.0
#include "warpline/forward/static_wire_proof.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "warpline/base/buffer_mark.h"
#include "warpline/packet/byte_order.h"
#include "warpline/packet/headers/ethernet.h"

namespace warpline::forward {
namespace {

constexpr const char* kParity = "rx_parity";
constexpr std::size_t kAddresses = 2 * sizeof(MacAddress);

using Tag = std::array<std::uint8_t, kAddresses>;

/// Destination and source of the buffer of that number in its pool: locally administered, different from each other.
Tag tag_of(unsigned number) {
  Tag tag{0x02, 'd', 0, 0, 0, 0, 0x02, 's', 0, 0, 0, 0};
  packet::store_be32(&tag[2], number);
  packet::store_be32(&tag[8], number);
  return tag;
}

Tag exchanged(const Tag& tag) {
  Tag other;
  std::rotate_copy(tag.begin(), tag.begin() + sizeof(MacAddress), tag.end(), other.begin());
  return other;
}

std::uint8_t* frame_in(void* object) {
  return static_cast<std::uint8_t*>(static_cast<rte_mbuf*>(object)->buf_addr) + RTE_PKTMBUF_HEADROOM;
}

struct Found {
  std::uint64_t exchanged = 0;  ///< XOR of marks
  std::uint64_t spoiled = 0;
};

void write_tag(rte_mempool* /*pool*/, void* /*opaque*/, void* object, unsigned number) {
  const Tag tag = tag_of(number);
  std::memcpy(frame_in(object), tag.data(), tag.size());
}

void read_tag(rte_mempool* /*pool*/, void* opaque, void* object, unsigned number) {
  Found& found = *static_cast<Found*>(opaque);
  const Tag tag = tag_of(number);
  Tag now;
  std::memcpy(now.data(), frame_in(object), now.size());
  if (now == exchanged(tag)) {
    found.exchanged ^= buffer_mark(object);
  } else if (now != tag) {
    ++found.spoiled;
  }
}

}  // namespace

StaticWireProof::StaticWireProof(std::span<const port::Port> ports, std::span<const memory::PortPools> pools)
    : ports_(ports) {
  const auto leaves_payload = [](const port::Port& port) { return port.extended_counters().contains(kParity); };
  if (!std::ranges::all_of(ports, leaves_payload)) return;
  for (const memory::PortPools& of_port : pools) {
    for (const port::RxPools& queue : of_port.queues()) {
      // No split parts the addresses: it leaves 22 bytes at least in the first buffer.
      rte_mempool* const pool = queue.header != nullptr ? queue.header : queue.payload;
      if (std::ranges::find(pools_, pool) == pools_.end()) pools_.push_back(pool);
    }
  }
  for (rte_mempool* const pool : pools_) rte_mempool_obj_iter(pool, write_tag, nullptr);
}

std::uint64_t StaticWireProof::sum(const char* counter) const {
  std::uint64_t sum = 0;
  for (const port::Port& port : ports_) sum += port.extended_counters()[counter];
  return sum;
}

StaticWireProof::Outcome StaticWireProof::outcome(bool swaps,
                                                  std::span<const std::unique_ptr<datapath::QueuePath>> paths) const {
  if (by_buffers()) return of_buffers(swaps, paths);
  const std::uint64_t kept = sum("tx_kept");
  const std::uint64_t exchanged = sum("tx_exchanged");
  const std::uint64_t spoiled = sum("tx_spoiled");
  return {.checked = kept + exchanged + spoiled, .bad = spoiled + (swaps ? kept : exchanged)};
}

StaticWireProof::Outcome StaticWireProof::of_buffers(
    bool swaps, std::span<const std::unique_ptr<datapath::QueuePath>> paths) const {
  Outcome outcome;
  std::uint64_t worked_on = 0;
  for (const port::Port& port : ports_) worked_on ^= port.extended_counters()[kParity];
  for (const auto& path : paths) {
    worked_on ^= path->sent.set_aside_parity;
    // Handed out by the driver beyond the run's budget, and not worked on.
    for (std::uint16_t i = path->held.first; i != path->held.end; ++i) worked_on ^= buffer_mark(path->held.mbufs[i]);
    outcome.checked += path->received.packets.get();
  }
  Found found;
  for (rte_mempool* const pool : pools_) rte_mempool_obj_iter(pool, read_tag, &found);
  outcome.bad = found.spoiled + (found.exchanged != (swaps ? worked_on : 0) ? 1 : 0);
  return outcome;
}

}  // namespace warpline::forward
