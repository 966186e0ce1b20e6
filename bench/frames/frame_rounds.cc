// SPDX-License-Identifier: Apache-2.0
// Our side of bench/frames/run: SPEAD packets of a file, in memory, into frames of one heap.
//
//     frame_rounds PACKETS PACKET_BYTES HEAP_BYTES PAYLOAD_BYTES [copies]
//
// PACKETS holds packets of PACKET_BYTES one behind the other, whole heaps from counter 1 on, or their counters do not
// matter. Each line on standard input is one measurement: all packets once, the time of it in seconds on standard
// output. Then every payload is compared with its packet's: a difference ends the program with 4.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "warpline/base/large_vector.h"
#include "warpline/base/prefetch.h"
#include "warpline/flow/frame_assembler.h"
#include "warpline/flow/payload_copy.h"
#include "warpline/packet/byte_order.h"

namespace {

using namespace warpline;

constexpr std::size_t kAhead = 4;

int measure(const std::vector<std::uint8_t>& packets, std::size_t packet_bytes, std::size_t heap, std::size_t payload) {
  const std::size_t per_heap = heap / payload;
  const std::size_t count = packets.size() / packet_bytes;
  const std::size_t heaps = count / per_heap;
  const auto description =
      flow::parse_frame_description(fmt::format("format=spead,packets={},payload={},window=2", per_heap, payload));
  if (!description.ok()) {
    std::cerr << description.error().message() << '\n';
    return 2;
  }
  // All frames stay, to be compared when the time is taken.
  LargeVector<std::byte> memory((heaps + 3) * (heap + per_heap + 4096) + 65536);
  for (std::string line; std::getline(std::cin, line);) {
    auto* const aligned =
        reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 255) / 256 * 256);
    auto assembler = flow::FrameAssembler::create(*description, flow::PacketForm::datagram,
                                                  {aligned, memory.data() + memory.size()});
    if (!assembler.ok()) {
      std::cerr << assembler.error().message() << '\n';
      return 2;
    }
    flow::FrameQueue frames = assembler->queue();
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < count; ++i) {
      // As whoever takes packets off a port in bursts does.
      if (i + kAhead < count) prefetch_bytes<false>(packets.data() + (i + kAhead) * packet_bytes, packet_bytes);
      const auto placement = assembler->take({packets.data() + i * packet_bytes, packet_bytes}, 0);
      if (placement != flow::Placement::placed) {
        std::cerr << "packet " << i << " is " << name(placement) << '\n';
        return 4;
      }
    }
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    std::size_t seen = 0;
    for (const flow::Frame* frame = frames.next(); frame != nullptr; frame = frames.next(), ++seen) {
      for (std::size_t i = 0; i < per_heap; ++i) {
        const std::uint8_t* const sent = packets.data() + (seen * per_heap + i + 1) * packet_bytes - payload;
        if (frame->missing != 0 || std::memcmp(frame->data + i * payload, sent, payload) != 0) {
          std::cerr << "a frame differs from its heap\n";
          return 4;
        }
      }
    }
    if (seen != heaps) {
      std::cerr << seen << " frames of " << heaps << " heaps\n";
      return 4;
    }
    std::cout << taken.count() << std::endl;
  }
  return 0;
}

int measure_copies(const std::vector<std::uint8_t>& packets, std::size_t packet_bytes, std::size_t payload) {
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
    std::cout << taken.count() << std::endl;
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 5 && (count != 6 || std::string_view(arguments[5]) != "copies")) {
    std::cerr << "frame_rounds PACKETS PACKET_BYTES HEAP_BYTES PAYLOAD_BYTES [copies]\n";
    return 2;
  }
  std::ifstream file(arguments[1], std::ios::binary);
  const std::vector<std::uint8_t> packets{std::istreambuf_iterator<char>(file), {}};
  if (!file || packets.empty()) {
    std::cerr << "cannot read " << arguments[1] << '\n';
    return 2;
  }
  if (count == 6) return measure_copies(packets, std::stoul(arguments[2]), std::stoul(arguments[4]));
  return measure(packets, std::stoul(arguments[2]), std::stoul(arguments[3]), std::stoul(arguments[4]));
}
