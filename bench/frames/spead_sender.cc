// SPDX-License-Identifier: Apache-2.0
// The sender of bench/frames/veth: SPEAD heaps over UDP, faster than one core receives them.
//
//     spead_sender ADDRESS PORT PACKETS PAYLOAD_BYTES FIRST HEAPS RATE HOLD
//
// Sends heaps of PACKETS packets from counter FIRST on, RATE packets a second, or as fast as it goes if that is 0, and
// prints the seconds that it took. Then it holds its processor for HOLD seconds, which it does nothing with. Up to 32
// packets go to the kernel in one call, which cuts them apart (UDP_SEGMENT). What a payload is,
// bench/frames/heap_pattern.h says.
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "heap_pattern.h"
#include "warpline/packet/byte_order.h"

namespace {

using namespace warpline;
using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kTogether = 32;
constexpr std::uint32_t kMagic = 0x53040206;  // SPEAD-64-48
constexpr std::uint32_t kItems = 5;
constexpr std::uint32_t kHeader = 8 + kItems * 8;
constexpr std::uint32_t kCounterItem = 8;

constexpr std::uint64_t item(std::uint64_t identifier, std::uint64_t value) {
  return std::uint64_t{1} << 63 | identifier << 48 | value;
}

/// The packets of one heap, one behind the other.
class Heap {
 public:
  explicit Heap(bench::HeapShape shape)
      : shape_(shape), stride_(kHeader + shape.payload), bytes_(std::size_t{shape.packets} * stride_) {
    for (std::uint32_t i = 0; i < shape.packets; ++i) {
      std::uint8_t* const packet = at(i);
      const std::uint64_t heap_bytes = std::uint64_t{shape.packets} * shape.payload;
      packet::store_be32(packet, kMagic);
      packet::store_be16(packet + 6, kItems);
      packet::store_be64(packet + 16, item(2, heap_bytes));
      packet::store_be64(packet + 24, item(3, std::uint64_t{i} * shape.payload));
      packet::store_be64(packet + 32, item(4, shape.payload));
      packet::store_be64(packet + 40, std::uint64_t{0x1600} << 48);  // an array from the heap's first byte on
      bench::write_payload(packet + kHeader, shape, 0, i);
    }
  }

  /// Makes the packets those of another heap.
  void number(std::uint64_t counter) {
    for (std::uint32_t i = 0; i < shape_.packets; ++i) {
      packet::store_be64(at(i) + kCounterItem, item(1, counter));
      bench::write_stamp(at(i) + kHeader, shape_, counter, i);
    }
  }
  [[nodiscard]] std::uint8_t* at(std::uint32_t i) { return bytes_.data() + std::size_t{i} * stride_; }
  [[nodiscard]] std::uint32_t stride() const { return stride_; }

 private:
  bench::HeapShape shape_;
  std::uint32_t stride_;
  std::vector<std::uint8_t> bytes_;
};

int connect_to(const char* address, const char* port, std::uint32_t packet_bytes) {
  const int handle = socket(AF_INET, SOCK_DGRAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(std::atoi(port)));
  const int cut = static_cast<int>(packet_bytes);
  const int room = 4 << 20;
  if (inet_pton(AF_INET, address, &to.sin_addr) != 1 ||
      connect(handle, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) != 0 ||
      setsockopt(handle, SOL_UDP, UDP_SEGMENT, &cut, sizeof(cut)) != 0 ||
      setsockopt(handle, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)) != 0) {
    std::perror("cannot send there");
    std::exit(3);
  }
  return handle;
}

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 9) {
    std::fputs("spead_sender ADDRESS PORT PACKETS PAYLOAD_BYTES FIRST HEAPS RATE HOLD\n", stderr);
    return 2;
  }
  const auto number = [&](int i) { return std::strtoull(arguments[i], nullptr, 10); };
  const bench::HeapShape shape{static_cast<std::uint32_t>(number(3)), static_cast<std::uint32_t>(number(4))};
  Heap heap(shape);
  const int handle = connect_to(arguments[1], arguments[2], heap.stride());
  const std::uint64_t first = number(5);
  const std::uint64_t heaps = number(6);
  const double rate = std::strtod(arguments[7], nullptr);
  const auto together = std::min<std::uint32_t>(kTogether, 65000 / heap.stride());
  const auto begin = Clock::now();
  std::uint64_t sent = 0;
  for (std::uint64_t counter = first; counter < first + heaps; ++counter) {
    heap.number(counter);
    for (std::uint32_t i = 0; i < shape.packets; i += together) {
      const std::uint32_t packets = std::min(together, shape.packets - i);
      while (rate > 0 && std::chrono::duration<double>(Clock::now() - begin).count() * rate < double(sent)) {
      }
      if (send(handle, heap.at(i), std::size_t{packets} * heap.stride(), 0) < 0 && errno != ECONNREFUSED) {
        std::perror("cannot send");
        return 3;
      }
      sent += packets;
    }
  }
  std::printf("%.9f\n", std::chrono::duration<double>(Clock::now() - begin).count());
  std::fflush(stdout);
  const auto end = Clock::now() + std::chrono::duration<double>(std::strtod(arguments[8], nullptr));
  while (Clock::now() < end) relax();
  return 0;
}
