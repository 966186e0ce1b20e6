// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rte_mbuf.h>

#include "warpline/memory/packet_pool.h"
#include "warpline/traffic/traffic.h"
#include "warpline/traffic/traffic_settings.h"

namespace warpline::traffic {

/// For tests: a pool of their own name, without caches so that in_use() is exact.
inline memory::PacketPool make_test_pool(std::uint32_t buffers, std::uint32_t data_room) {
  static int pools = 0;
  return *memory::PacketPool::make("measure" + std::to_string(pools++), buffers, 0, data_room, -1);
}

inline TrafficSettings traffic_of_size(const std::string& size, std::uint32_t flows = 64) {
  TrafficSettings settings;
  settings.size = size;
  settings.flows = flows;
  return settings;
}

inline TrafficSettings ipv6_traffic_of_size(const std::string& size) {
  TrafficSettings settings = traffic_of_size(size);
  settings.src_ip = *parse_ip("2001:2::ffff");
  settings.dst_ip = *parse_ip("2001:2::1:1");
  return settings;
}

/// All bytes of a frame in one piece.
inline std::vector<std::uint8_t> bytes_of(const rte_mbuf* mbuf) {
  std::vector<std::uint8_t> bytes(mbuf->pkt_len);
  const void* read = rte_pktmbuf_read(mbuf, 0, mbuf->pkt_len, bytes.data());
  if (read != bytes.data()) std::memcpy(bytes.data(), read, bytes.size());
  return bytes;
}

/// The byte `offset` into a frame of any number of segments.
inline std::uint8_t& byte_at(rte_mbuf* mbuf, std::uint32_t offset) {
  while (offset >= mbuf->data_len) {
    offset -= mbuf->data_len;
    mbuf = mbuf->next;
  }
  return *rte_pktmbuf_mtod_offset(mbuf, std::uint8_t*, offset);
}

}  // namespace warpline::traffic
