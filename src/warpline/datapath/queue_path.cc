// SPDX-License-Identifier: Apache-2.0
#include "warpline/datapath/queue_path.h"

#include <algorithm>

namespace warpline::datapath {

QueuePath::~QueuePath() { rte_pktmbuf_free_bulk(held.mbufs.data() + held.first, held.end - held.first); }

std::uint16_t QueuePath::take_held(rte_mbuf** mbufs, std::uint16_t room) {
  const std::uint16_t count = std::min<std::uint16_t>(room, held.end - held.first);
  std::copy_n(held.mbufs.data() + held.first, count, mbufs);
  held.first = static_cast<std::uint16_t>(held.first + count);
  return count;
}

void QueuePath::hold(std::uint16_t room) {
  if (recycler != nullptr) recycler->poll(recycle_index);
  if (held.first != 0) {
    std::copy(held.mbufs.data() + held.first, held.mbufs.data() + held.end, held.mbufs.data());
    held.end = held_count();
    held.first = 0;
  }
  const std::uint16_t request = room == 0 ? 0 : std::max(room, port::kLeastRequest);
  held.end =
      static_cast<std::uint16_t>(held.end + rte_eth_rx_burst(rx.port, rx.queue, held.mbufs.data() + held.end, request));
}

/// Where there is too little room for a request that every driver answers, packets come by way of `held`.
std::uint16_t QueuePath::receive_few(rte_mbuf** mbufs, std::uint16_t room) {
  if (room == 0) return rte_eth_rx_burst(rx.port, rx.queue, mbufs, 0);
  const std::uint16_t before = take_held(mbufs, room);
  const auto rest = static_cast<std::uint16_t>(room - before);
  if (rest == 0) return room;
  if (rest >= port::kLeastRequest) {
    return static_cast<std::uint16_t>(before + rte_eth_rx_burst(rx.port, rx.queue, mbufs + before, rest));
  }
  held.first = 0;
  held.end = rte_eth_rx_burst(rx.port, rx.queue, held.mbufs.data(), port::kLeastRequest);
  return static_cast<std::uint16_t>(before + take_held(mbufs + before, rest));
}

}  // namespace warpline::datapath
