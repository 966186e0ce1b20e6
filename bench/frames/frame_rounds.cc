// SPDX-License-Identifier: Apache-2.0
// Our side of bench/frames/run: SPEAD packets of a file, in memory, into frames of one heap.
//
//     frame_rounds PACKETS PACKET_BYTES HEAP_BYTES PAYLOAD_BYTES [copies]
//
// PACKETS holds packets of PACKET_BYTES one behind the other, whole heaps with counters that follow each other. Each
// line on standard input is one measurement: all packets that arrive once, the time of one in seconds on standard
// output. A line "LOSS DUPLICATE REORDER" tells how likely it is that a packet is lost, comes twice, or is overtaken by
// others; an empty one, that none is. Then every payload is compared with its packet's, and each mask: a difference
// ends the program with 4.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "warpline/base/large_vector.h"
#include "warpline/base/prefetch.h"
#include "warpline/base/random.h"
#include "warpline/flow/frame_assembler.h"
#include "warpline/flow/payload_copy.h"
#include "warpline/packet/byte_order.h"

namespace {

using namespace warpline;

constexpr std::size_t kAhead = 4;

/// How likely it is that a packet is lost, comes twice, or is overtaken.
struct Faults {
  double loss = 0;
  double duplicate = 0;
  double reorder = 0;
};

/// What arrives of some packets, one behind the other as they came, as a port's buffers are.
struct Arrivals {
  LargeVector<std::uint8_t> bytes;  // as of a port's pool, in huge pages
  std::vector<bool> there;          ///< of each packet sent
  std::size_t count = 0;            ///< of packets that arrive
  std::size_t again = 0;            ///< of these, the second of two
};

/// A packet that comes twice does so at once; one that is overtaken, by up to kOvertaken others.
Arrivals arrivals_of(const LargeVector<std::uint8_t>& packets, std::size_t packet_bytes, const Faults& faults) {
  constexpr std::size_t kOvertaken = 64;
  const std::size_t count = packets.size() / packet_bytes;
  Random random(1);
  const auto happens = [&](double likely) { return static_cast<double>(random.below(1'000'000)) < likely * 1e6; };
  Arrivals arrivals{.bytes = {}, .there = std::vector<bool>(count, false)};
  std::vector<std::pair<std::size_t, std::size_t>> order;  // when, which
  for (std::size_t i = 0; i < count; ++i) {
    if (happens(faults.loss)) continue;
    const std::size_t when = happens(faults.reorder) ? i + 1 + random.below(kOvertaken) : i;
    order.emplace_back(when, i);
    arrivals.there[i] = true;
    if (!happens(faults.duplicate)) continue;
    order.emplace_back(when, i);
    ++arrivals.again;
  }
  std::ranges::sort(order);
  arrivals.count = order.size();
  arrivals.bytes.reserve(order.size() * packet_bytes);
  for (const auto& [when, i] : order) {
    const auto from = packets.begin() + static_cast<std::ptrdiff_t>(i * packet_bytes);
    arrivals.bytes.insert(arrivals.bytes.end(), from, from + static_cast<std::ptrdiff_t>(packet_bytes));
  }
  return arrivals;
}

/// What a frame must be: the payloads that came, in their places, and no others in its mask.
struct Expected {
  const LargeVector<std::uint8_t>& packets;
  const Arrivals& arrivals;
  std::size_t packet_bytes;
  std::size_t payload;
  std::size_t per_heap;

  [[nodiscard]] bool is(const flow::Frame& frame, std::size_t heap) const {
    std::size_t present = 0;
    for (std::size_t i = 0; i < per_heap; ++i) {
      const std::size_t packet = heap * per_heap + i;
      if (frame.mask[i] != (arrivals.there[packet] ? 1 : 0)) return false;
      if (frame.mask[i] == 0) continue;
      const std::uint8_t* const sent = packets.data() + (packet + 1) * packet_bytes - payload;
      if (std::memcmp(frame.data + i * payload, sent, payload) != 0) return false;
      ++present;
    }
    return frame.present == present && frame.missing == per_heap - present;
  }
};

/// What a line asks for: "LOSS DUPLICATE REORDER", each 0 if it is not there.
Faults faults_of(const std::string& line) {
  Faults faults;
  std::istringstream(line) >> faults.loss >> faults.duplicate >> faults.reorder;
  return faults;
}

int measure(const LargeVector<std::uint8_t>& packets, std::size_t packet_bytes, std::size_t heap, std::size_t payload) {
  const std::size_t per_heap = heap / payload;
  const std::size_t heaps = packets.size() / packet_bytes / per_heap;
  const std::uint64_t first_heap = packet::load_be64(packets.data() + 8) & 0xffff'ffff'ffff;
  const auto description =
      flow::parse_frame_description(fmt::format("format=spead,packets={},payload={},window=2", per_heap, payload));
  if (!description.ok()) {
    std::cerr << description.error().message() << '\n';
    return 2;
  }
  // All frames stay, to be compared when the time is taken.
  LargeVector<std::byte> memory((heaps + 3) * (heap + per_heap + 4096) + 65536);
  std::map<std::string, Arrivals> made;
  for (std::string line; std::getline(std::cin, line);) {
    if (!made.contains(line)) made[line] = arrivals_of(packets, packet_bytes, faults_of(line));
    const Arrivals& arrivals = made[line];
    const Expected expected{packets, arrivals, packet_bytes, payload, per_heap};
    auto* const aligned =
        reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 255) / 256 * 256);
    auto assembler = flow::FrameAssembler::create(*description, flow::PacketForm::datagram,
                                                  {aligned, memory.data() + memory.size()});
    if (!assembler.ok()) {
      std::cerr << assembler.error().message() << '\n';
      return 2;
    }
    flow::FrameQueue frames = assembler->queue();
    const std::uint8_t* const bytes = arrivals.bytes.data();
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < arrivals.count; ++i) {
      // As whoever takes packets off a port in bursts does.
      if (i + kAhead < arrivals.count) prefetch_bytes<false>(bytes + (i + kAhead) * packet_bytes, packet_bytes);
      static_cast<void>(assembler->place({bytes + i * packet_bytes, packet_bytes}, 0));
    }
    assembler->flush();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    const flow::AssemblerCounts counts = assembler->counts();
    const auto count = [&](flow::Placement placement) {
      return counts.placements[static_cast<std::size_t>(placement)];
    };
    if (count(flow::Placement::placed) != arrivals.count - arrivals.again ||
        count(flow::Placement::duplicate) != arrivals.again) {
      std::cerr << "packets are not where they belong\n";
      return 4;
    }
    std::size_t seen = 0;
    for (const flow::Frame* frame = frames.next(); frame != nullptr; frame = frames.next(), ++seen) {
      if (!expected.is(*frame, frame->first_sequence - first_heap)) {
        std::cerr << "a frame differs from its heap\n";
        return 4;
      }
    }
    if (seen != heaps) {
      std::cerr << seen << " frames of " << heaps << " heaps\n";
      return 4;
    }
    std::cout << taken.count() / static_cast<double>(arrivals.count) << '\n' << std::flush;
  }
  return 0;
}

int measure_copies(const LargeVector<std::uint8_t>& packets, std::size_t packet_bytes, std::size_t payload) {
  const std::size_t count = packets.size() / packet_bytes;
  LargeVector<std::uint8_t> memory(count * payload);
  for (std::string line; std::getline(std::cin, line);) {
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < count; ++i) {
      if (i + kAhead < count) prefetch_bytes<false>(packets.data() + (i + kAhead) * packet_bytes, packet_bytes);
      flow::stream_payload(memory.data() + i * payload, packets.data() + (i + 1) * packet_bytes - payload,
                           static_cast<std::uint32_t>(payload));
    }
    flow::fence_payloads();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint8_t* const sent = packets.data() + (i + 1) * packet_bytes - payload;
      if (std::memcmp(memory.data() + i * payload, sent, payload) != 0) return 4;
    }
    std::cout << taken.count() / static_cast<double>(count) << '\n' << std::flush;
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const bool copies = count == 6 && std::string_view(arguments[5]) == "copies";
  if (count != 5 && !copies) {
    std::cerr << "frame_rounds PACKETS PACKET_BYTES HEAP_BYTES PAYLOAD_BYTES [copies]\n";
    return 2;
  }
  std::ifstream file(arguments[1], std::ios::binary);
  std::ostringstream whole;
  const bool read = static_cast<bool>(whole << file.rdbuf());  // an iterator would throw where a read fails
  const std::string_view bytes = whole.view();
  const LargeVector<std::uint8_t> packets(bytes.begin(), bytes.end());
  if (!read || packets.empty()) {
    std::cerr << "cannot read " << arguments[1] << '\n';
    return 2;
  }
  if (copies) return measure_copies(packets, std::stoul(arguments[2]), std::stoul(arguments[4]));
  return measure(packets, std::stoul(arguments[2]), std::stoul(arguments[3]), std::stoul(arguments[4]));
}
