// SPDX-License-Identifier: Apache-2.0
#include "warpline/service/streams/stream_frame_totals.h"

#include <numeric>
#include <string>
#include <string_view>

namespace warpline::service {

using stream::Disposition;

StreamFrameTotals::StreamFrameTotals(const stream_port::FrameCounters& frames,
                                     const std::array<Counter, stream::kDispositions>& dispositions_so_far)
    : received(frames.received.get()),
      received_bytes(frames.received_bytes.get()),
      sent(frames.sent.get()),
      sent_bytes(frames.sent_bytes.get()),
      answered(frames.answered.get()),
      not_answered(frames.not_answered.get()),
      too_many_pieces(frames.too_many_pieces.get()),
      other_vlan(frames.other_vlan.get()),
      no_mbuf(frames.no_mbuf.get()) {
  for (std::size_t i = 0; i < stream::kDispositions; ++i) dispositions[i] = dispositions_so_far[i].get();
}

StreamFrameTotals& StreamFrameTotals::operator+=(const StreamFrameTotals& other) {
  for (const auto count :
       {&StreamFrameTotals::received, &StreamFrameTotals::received_bytes, &StreamFrameTotals::sent,
        &StreamFrameTotals::sent_bytes, &StreamFrameTotals::answered, &StreamFrameTotals::not_answered,
        &StreamFrameTotals::too_many_pieces, &StreamFrameTotals::other_vlan, &StreamFrameTotals::no_mbuf}) {
    this->*count += other.*count;
  }
  for (std::size_t i = 0; i < stream::kDispositions; ++i) dispositions[i] += other.dispositions[i];
  return *this;
}

std::uint64_t StreamFrameTotals::dropped() const {
  std::uint64_t sum = not_answered + too_many_pieces + other_vlan;
  for (std::size_t i = 0; i < stream::kDispositions; ++i) {
    if (stream::is_drop(static_cast<Disposition>(i))) sum += dispositions[i];
  }
  return sum;
}

std::uint64_t StreamFrameTotals::accounted() const {
  return std::accumulate(dispositions.begin(), dispositions.end(),
                         answered + not_answered + too_many_pieces + other_vlan);
}

nlohmann::ordered_json StreamFrameTotals::drops(const port::PortCounters& device) const {
  nlohmann::ordered_json by_reason = nlohmann::ordered_json::object();
  const auto add = [&](std::string_view reason, std::uint64_t count) {
    if (count != 0) by_reason[std::string(reason)] = count;
  };
  for (std::size_t i = 0; i < stream::kDispositions; ++i) {
    const auto disposition = static_cast<Disposition>(i);
    if (stream::is_drop(disposition)) add(stream::name(disposition), dispositions[i]);
  }
  add("not_answered", not_answered);
  add("too_many_pieces", too_many_pieces);
  add("other_vlan", other_vlan);
  add("missed_by_device", device.rx_missed);
  add("errors_of_device", device.rx_errors);
  add("no_mbuf_for_device", device.rx_no_mbuf);
  return by_reason;
}

void StreamFrameTotals::add_kept(nlohmann::ordered_json& frames) const {
  for (std::size_t i = 0; i < stream::kDispositions; ++i) {
    const auto disposition = static_cast<Disposition>(i);
    if (!stream::is_drop(disposition)) frames[std::string(stream::name(disposition))] = dispositions[i];
  }
}

}  // namespace warpline::service
