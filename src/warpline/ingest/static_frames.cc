// SPDX-License-Identifier: Apache-2.0
#include "warpline/ingest/static_frames.h"

#include <algorithm>
#include <cstring>

#include <rte_mbuf.h>
#include <rte_mempool.h>

namespace warpline::ingest {
namespace {

struct Filling {
  const traffic::TrafficPlan& plan;
  std::uint64_t ticks;
  std::uint64_t frames;
};

void fill_one(rte_mempool* /*pool*/, void* opaque, void* object, unsigned /*index*/) {
  Filling& filling = *static_cast<Filling*>(opaque);
  const auto* const mbuf = static_cast<const rte_mbuf*>(object);
  const traffic::FramePlace place = filling.plan.place(filling.frames);
  const std::uint32_t length = filling.plan.frame_bytes(place);
  if (length + RTE_PKTMBUF_HEADROOM > mbuf->buf_len) return;
  const traffic::Stamp stamp = filling.plan.stamp(0, filling.frames, filling.ticks);
  auto* const head = static_cast<std::uint8_t*>(mbuf->buf_addr) + RTE_PKTMBUF_HEADROOM;
  filling.plan.write_head(place, stamp, head);
  std::memcpy(head + filling.plan.head_bytes(), filling.plan.pattern(stamp), length - filling.plan.head_bytes());
  ++filling.frames;
}

}  // namespace

bool on_static_wires(std::span<const port::PortSettings> ports) {
  return !ports.empty() && std::ranges::all_of(ports, [](const port::PortSettings& port) {
    return port.spec.starts_with("net_vnic") && port.spec.find("wire=static") != std::string::npos;
  });
}

std::uint64_t fill_with_frames(std::span<const memory::PortPools> pools, const traffic::TrafficPlan& plan,
                               std::uint64_t ticks) {
  Filling filling{plan, ticks, 0};
  for (const memory::PortPools& port : pools) {
    for (const memory::PacketPool& pool : port.pools()) rte_mempool_obj_iter(pool.get(), fill_one, &filling);
  }
  return filling.frames;
}

}  // namespace warpline::ingest
