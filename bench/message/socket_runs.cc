// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "runs.h"
#include "warpline/base/statistics/counter.h"
#include "warpline/base/statistics/histogram.h"
#include "warpline/base/time/clock.h"
#include "warpline/transport/udp_socket.h"

namespace warpline {
namespace {

constexpr unsigned kBatch = 64;

class Socket {
 public:
  explicit Socket(int handle) : handle_(handle) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() {
    if (handle_ >= 0) ::close(handle_);
  }
  [[nodiscard]] int get() const { return handle_; }

 private:
  int handle_;
};

sockaddr_in loopback() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void set(int handle, int level, int name, int value) { (void)setsockopt(handle, level, name, &value, sizeof(value)); }

/// Bound on loopback; its address.
/// What a socket is set up with does not fail on loopback; if it does, there is nothing to measure.
void must(int result) {
  if (result == 0) return;
  std::perror("socket");
  std::abort();
}

sockaddr_in bind_to_loopback(int handle) {
  sockaddr_in address = loopback();
  socklen_t length = sizeof(address);
  must(::bind(handle, reinterpret_cast<sockaddr*>(&address), length));
  (void)::getsockname(handle, reinterpret_cast<sockaddr*>(&address), &length);
  return address;
}

/// Messages of recvmmsg and sendmmsg with a buffer each.
struct Batch {
  explicit Batch(std::uint32_t length) : bytes(kBatch * length) {
    for (unsigned i = 0; i < kBatch; ++i) {
      pieces[i] = {bytes.data() + i * length, length};
      messages[i] = {};
      messages[i].msg_hdr.msg_iov = &pieces[i];
      messages[i].msg_hdr.msg_iovlen = 1;
    }
  }
  std::vector<std::uint8_t> bytes;
  std::array<iovec, kBatch> pieces;
  std::array<mmsghdr, kBatch> messages;
};

unsigned fetch(int handle, Batch& batch) {
  const int count = ::recvmmsg(handle, batch.messages.data(), kBatch, MSG_DONTWAIT, nullptr);
  return count < 0 ? 0 : static_cast<unsigned>(count);
}

void give(int handle, Batch& batch, unsigned count, const std::atomic<bool>& stop) {
  for (unsigned sent = 0; sent < count && !stop.load(std::memory_order_relaxed);) {
    const int now = ::sendmmsg(handle, batch.messages.data() + sent, count - sent, MSG_DONTWAIT);
    if (now > 0) sent += static_cast<unsigned>(now);
  }
}

struct Samples {
  std::uint64_t counts[2] = {};
  std::uint64_t ticks[2] = {};
  void take(bool end, std::uint64_t count) {
    counts[end] = count;
    ticks[end] = ticks_now();
  }
  [[nodiscard]] double per_second() const {
    return static_cast<double>(counts[1] - counts[0]) / (ticks_to_nanos(ticks[1] - ticks[0]) / 1e9);
  }
};

}  // namespace

RunFigures run_udp_echo(const BenchLcores& lcores, std::uint32_t length, std::uint32_t outstanding) {
  const Socket server(::socket(AF_INET, SOCK_DGRAM, 0));
  const Socket client(::socket(AF_INET, SOCK_DGRAM, 0));
  const sockaddr_in there = bind_to_loopback(server.get());
  const sockaddr_in here = bind_to_loopback(client.get());
  must(::connect(server.get(), reinterpret_cast<const sockaddr*>(&here), sizeof(here)));
  must(::connect(client.get(), reinterpret_cast<const sockaddr*>(&there), sizeof(there)));
  std::atomic<bool> stop{false};
  Counter back;
  auto latency = std::make_unique<Histogram>();
  Samples samples;
  run_both(
      lcores,
      [&] {
        Batch batch(length);
        while (!stop.load(std::memory_order_relaxed)) give(server.get(), batch, fetch(server.get(), batch), stop);
      },
      [&] {
        Batch batch(length);
        std::uint32_t out = 0;
        std::uint64_t begun = ticks_now();
        std::uint64_t heard = begun;
        const std::uint64_t patience = nanos_to_ticks(Nanos{50'000'000});
        while (!stop.load(std::memory_order_relaxed)) {
          const unsigned more = std::min<std::uint32_t>(kBatch, outstanding - out);
          if (more != 0) {
            begun = ticks_now();
            give(client.get(), batch, more, stop);
            out += more;
          }
          const unsigned count = fetch(client.get(), batch);
          if (count != 0) heard = ticks_now();
          if (count == 0 && ticks_now() - heard > patience) out = 0;  // lost: nobody sends it again
          if (count != 0 && outstanding == 1) {
            latency->record(static_cast<std::uint64_t>(ticks_to_nanos(ticks_now() - begun)));
          }
          out -= std::min<std::uint32_t>(out, count);
          back.add(count);
        }
      },
      [&](bool end) { samples.take(end, back.get()); }, [&] { stop = true; });
  return {.per_second = samples.per_second(),
          .p50_ns = static_cast<double>(latency->quantile(0.5)),
          .p99_ns = static_cast<double>(latency->quantile(0.99))};
}

RunFigures run_udp_stream(const BenchLcores& lcores, std::uint32_t datagram) {
  const SocketAddress any{Ipv4Address{{127, 0, 0, 1}}, 0};
  auto server = transport::UdpSocket::open({.local = any, .datagram_bytes = datagram});
  auto client = transport::UdpSocket::open({.local = any, .datagram_bytes = datagram});
  if (!server || !client) return {};
  const message::PeerAddress to = message::peer_address(any.address, (*server)->port());
  std::atomic<bool> stop{false};
  Counter bytes;
  Samples samples;
  std::vector<std::uint8_t> memory(datagram);
  run_both(
      lcores,
      [&] {
        while (!stop.load(std::memory_order_relaxed)) {
          std::uint64_t arrived = 0;
          for (const message::Datagram& one : (*server)->receive(Nanos{0})) {
            std::memcpy(memory.data(), one.head, one.head_length);
            arrived += one.head_length;
          }
          bytes.add(arrived);
        }
      },
      [&] {
        std::vector<std::uint8_t> payload(datagram, 0x5a);
        while (!stop.load(std::memory_order_relaxed)) {
          const std::span<message::Outgoing> room = (*client)->room();
          for (message::Outgoing& out : room) {
            out.head_length = 0;
            out.payload = payload.data();
            out.payload_length = datagram;
            out.to = to;
          }
          if (!room.empty()) (*client)->send(room.size(), Nanos{0});
        }
      },
      [&](bool end) { samples.take(end, bytes.get()); }, [&] { stop = true; });
  return {.gbps = samples.per_second() * 8e-9};
}

namespace {

/// A connection within this process: (server's end, client's end).
std::pair<int, int> tcp_pair() {
  const Socket listener(::socket(AF_INET, SOCK_STREAM, 0));
  const sockaddr_in there = bind_to_loopback(listener.get());
  (void)::listen(listener.get(), 1);
  const int client = ::socket(AF_INET, SOCK_STREAM, 0);
  must(::connect(client, reinterpret_cast<const sockaddr*>(&there), sizeof(there)));
  const int server = ::accept(listener.get(), nullptr, nullptr);
  for (const int handle : {server, client}) {
    set(handle, IPPROTO_TCP, TCP_NODELAY, 1);
    ::fcntl(handle, F_SETFL, O_NONBLOCK);
  }
  return {server, client};
}

void write_all(int handle, const std::uint8_t* bytes, std::size_t length, const std::atomic<bool>& stop) {
  for (std::size_t sent = 0; sent < length && !stop.load(std::memory_order_relaxed);) {
    const ssize_t now = ::send(handle, bytes + sent, length - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (now > 0) sent += static_cast<std::size_t>(now);
  }
}

}  // namespace

RunFigures run_tcp_echo(const BenchLcores& lcores, std::uint32_t length, std::uint32_t outstanding) {
  const auto [server_end, client_end] = tcp_pair();
  const Socket server(server_end), client(client_end);
  std::atomic<bool> stop{false};
  Counter back;
  Samples samples;
  constexpr std::size_t kRoom = 1 << 16;
  run_both(
      lcores,
      [&, handle = server.get()] {
        std::vector<std::uint8_t> bytes(kRoom);
        while (!stop.load(std::memory_order_relaxed)) {
          const ssize_t count = ::recv(handle, bytes.data(), bytes.size(), MSG_DONTWAIT);
          if (count > 0) write_all(handle, bytes.data(), static_cast<std::size_t>(count), stop);
        }
      },
      [&, handle = client.get()] {
        std::vector<std::uint8_t> bytes(kRoom);
        std::uint64_t out = 0;  // bytes
        while (!stop.load(std::memory_order_relaxed)) {
          const std::uint64_t more = (std::uint64_t{outstanding} * length - out) / length * length;
          if (more != 0) write_all(handle, bytes.data(), more, stop);
          out += more;
          const ssize_t count = ::recv(handle, bytes.data(), bytes.size(), MSG_DONTWAIT);
          if (count <= 0) continue;
          out -= static_cast<std::uint64_t>(count);
          back.add(static_cast<std::uint64_t>(count));
        }
      },
      [&](bool end) { samples.take(end, back.get()); }, [&] { stop = true; });
  return {.per_second = samples.per_second() / length};
}

RunFigures run_tcp_stream(const BenchLcores& lcores) {
  const auto [server_end, client_end] = tcp_pair();
  const Socket server(server_end), client(client_end);
  std::atomic<bool> stop{false};
  Counter bytes;
  Samples samples;
  constexpr std::size_t kRoom = 1 << 18;
  run_both(
      lcores,
      [&, handle = server.get()] {
        std::vector<std::uint8_t> memory(kRoom);
        while (!stop.load(std::memory_order_relaxed)) {
          const ssize_t count = ::recv(handle, memory.data(), memory.size(), MSG_DONTWAIT);
          if (count > 0) bytes.add(static_cast<std::uint64_t>(count));
        }
      },
      [&, handle = client.get()] {
        const std::vector<std::uint8_t> memory(kRoom, 0x5a);
        while (!stop.load(std::memory_order_relaxed)) {
          (void)::send(handle, memory.data(), memory.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        }
      },
      [&](bool end) { samples.take(end, bytes.get()); }, [&] { stop = true; });
  return {.gbps = samples.per_second() * 8e-9};
}

}  // namespace warpline
