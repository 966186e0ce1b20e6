// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <vector>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "runs.h"
#include "warpline/base/statistics/counter.h"
#include "warpline/base/time/clock.h"
#include "warpline/packet/headers/ethernet.h"

namespace warpline {
namespace {

constexpr std::uint16_t kBurst = 64;
using Burst = std::array<rte_mbuf*, kBurst>;

std::uint16_t receive(std::uint16_t port, Burst& burst) { return rte_eth_rx_burst(port, 0, burst.data(), kBurst); }

/// All of them leave, sooner or later.
void send_all(std::uint16_t port, Burst& burst, std::uint16_t count, const std::atomic<bool>& stop) {
  std::uint16_t sent = 0;
  while (sent < count && !stop.load(std::memory_order_relaxed)) {
    sent = static_cast<std::uint16_t>(
        sent + rte_eth_tx_burst(port, 0, burst.data() + sent, static_cast<std::uint16_t>(count - sent)));
  }
  rte_pktmbuf_free_bulk(burst.data() + sent, static_cast<unsigned>(count - sent));
}

/// An application's message of 8 MiB, gone through piece by piece, again and again.
class Memory {
 public:
  std::uint8_t* next(std::uint32_t length) {
    if (at_ + length > bytes_.size()) at_ = 0;
    at_ += length;
    return bytes_.data() + at_ - length;
  }

 private:
  std::vector<std::uint8_t> bytes_ = std::vector<std::uint8_t>(8 << 20);
  std::size_t at_ = 0;
};

/// A frame of no protocol, its bytes out of the application's memory.
rte_mbuf* make_frame(rte_mempool* pool, std::uint32_t length, Memory& memory) {
  rte_mbuf* const mbuf = rte_pktmbuf_alloc(pool);
  if (mbuf == nullptr) return nullptr;
  std::memcpy(rte_pktmbuf_append(mbuf, static_cast<std::uint16_t>(length)), memory.next(length), length);
  return mbuf;
}

RunFigures figures(const std::uint64_t (&counts)[2], const std::uint64_t (&ticks)[2], std::uint32_t payload) {
  const double seconds = ticks_to_nanos(ticks[1] - ticks[0]) / 1e9;
  const double rate = static_cast<double>(counts[1] - counts[0]) / seconds;
  return {.per_second = rate, .gbps = rate * payload * 8e-9};
}

}  // namespace

RunFigures run_raw_echo(const BenchLcores& lcores, BenchWire& wire, std::uint32_t frame, std::uint32_t outstanding) {
  const std::uint16_t there = wire.server->port().id();
  const std::uint16_t here = wire.client->port().id();
  std::atomic<bool> stop{false};
  Counter back;
  std::uint64_t counts[2], ticks[2];
  run_both(
      lcores,
      [&] {
        Burst burst;
        while (!stop.load(std::memory_order_relaxed)) {
          const std::uint16_t count = receive(there, burst);
          for (std::uint16_t i = 0; i < count; ++i) packet::swap_macs(rte_pktmbuf_mtod(burst[i], std::uint8_t*));
          send_all(there, burst, count, stop);
        }
      },
      [&] {
        Burst burst;
        Memory memory;
        std::uint32_t out = 0;
        while (!stop.load(std::memory_order_relaxed)) {
          const std::uint16_t count = receive(here, burst);
          rte_pktmbuf_free_bulk(burst.data(), count);
          back.add(count);
          out -= std::min<std::uint32_t>(out, count);
          const auto more = static_cast<std::uint16_t>(std::min<std::uint32_t>(kBurst, outstanding - out));
          std::uint16_t made = 0;
          while (made < more && (burst[made] = make_frame(wire.client->pool(), frame, memory)) != nullptr) ++made;
          out += made;
          send_all(here, burst, made, stop);
        }
      },
      [&](bool end) {
        counts[end] = back.get();
        ticks[end] = ticks_now();
      },
      [&] { stop = true; });
  return figures(counts, ticks, 0);
}

RunFigures run_raw_stream(const BenchLcores& lcores, BenchWire& wire, std::uint32_t frame, std::uint32_t payload) {
  const std::uint16_t there = wire.server->port().id();
  const std::uint16_t here = wire.client->port().id();
  std::atomic<bool> stop{false};
  Counter arrived;
  std::uint64_t counts[2], ticks[2];
  run_both(
      lcores,
      [&] {
        Burst burst;
        Memory memory;
        while (!stop.load(std::memory_order_relaxed)) {
          const std::uint16_t count = receive(there, burst);
          // As a receiver of payload does: into the application's memory.
          for (std::uint16_t i = 0; i < count; ++i) {
            std::memcpy(memory.next(burst[i]->data_len), rte_pktmbuf_mtod(burst[i], void*), burst[i]->data_len);
          }
          rte_pktmbuf_free_bulk(burst.data(), count);
          arrived.add(count);
        }
      },
      [&] {
        Burst burst;
        Memory memory;
        while (!stop.load(std::memory_order_relaxed)) {
          std::uint16_t made = 0;
          while (made < kBurst && (burst[made] = make_frame(wire.client->pool(), frame, memory)) != nullptr) ++made;
          send_all(here, burst, made, stop);
        }
      },
      [&](bool end) {
        counts[end] = arrived.get();
        ticks[end] = ticks_now();
      },
      [&] { stop = true; });
  return figures(counts, ticks, payload);
}

}  // namespace warpline
