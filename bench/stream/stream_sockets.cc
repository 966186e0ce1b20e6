// SPDX-License-Identifier: Apache-2.0
// The kernel's TCP for bench/stream/run: one process sends, one receives.
//
//     stream_sockets receive ADDRESS PORT CONNECTIONS BYTES plain|verified
//     stream_sockets send ADDRESS PORT CONNECTIONS BYTES plain|verified
//
// BYTES are of all connections together. `receive` says "ready" once it listens, and at the end the seconds from the
// first byte to the last. Writes are of up to 1 MiB, reads of up to as much as one buffer has. "verified": bytes are
// made and compared as `stream send` and `stream receive --verify` do it.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "warpline/stream/seeded_payload.h"

namespace {

using namespace warpline;

constexpr std::size_t kPiece = 1 << 20;
constexpr int kEvents = 64;

struct Stream {
  int socket = -1;
  std::uint16_t number = 0;     ///< the sender's port, by which its bytes are known
  std::uint64_t at = 0;         ///< bytes that were sent, or have come
  std::uint64_t made_from = 0;  ///< of the sender: `piece` has bytes from here on
  std::vector<std::uint8_t> piece;
};

struct Plan {
  sockaddr_in address{};
  std::uint32_t connections = 0;
  std::uint64_t each = 0;  ///< bytes of a connection
  bool verified = false;
};

[[noreturn]] void fail(std::string_view what) {
  fmt::print(stderr, "{}: {}\n", what, std::strerror(errno));
  std::exit(1);
}

int check(int result, std::string_view what) {
  if (result < 0) fail(what);
  return result;
}

sockaddr* any(sockaddr_in& address) { return reinterpret_cast<sockaddr*>(&address); }

/// Waits for what the sockets of all streams are ready for, until each is done.
template <typename F>
void serve(std::vector<Stream>& streams, std::uint32_t events, F&& ready) {
  const int poll = check(epoll_create1(0), "epoll_create1");
  for (Stream& stream : streams) {
    epoll_event event{.events = events, .data = {.ptr = &stream}};
    check(epoll_ctl(poll, EPOLL_CTL_ADD, stream.socket, &event), "epoll_ctl");
  }
  for (std::size_t left = streams.size(); left != 0;) {
    epoll_event found[kEvents];
    const int count = check(epoll_wait(poll, found, kEvents, -1), "epoll_wait");
    for (int i = 0; i < count; ++i) {
      auto& stream = *static_cast<Stream*>(found[i].data.ptr);
      if (ready(stream)) continue;
      check(epoll_ctl(poll, EPOLL_CTL_DEL, stream.socket, nullptr), "epoll_ctl");
      --left;
    }
  }
  close(poll);
}

void send(const Plan& plan) {
  const stream::SeededPayload payload(1);
  std::vector<std::uint8_t> same(kPiece, 0x5a);
  std::vector<Stream> streams(plan.connections);
  for (Stream& stream : streams) {
    stream.socket = check(socket(AF_INET, SOCK_STREAM, 0), "socket");
    sockaddr_in to = plan.address;
    check(connect(stream.socket, any(to), sizeof to), "connect");
    sockaddr_in own{};
    socklen_t length = sizeof own;
    check(getsockname(stream.socket, any(own), &length), "getsockname");
    stream.number = ntohs(own.sin_port);
  }
  serve(streams, EPOLLOUT, [&](Stream& stream) {
    const std::uint8_t* bytes = same.data();
    std::uint64_t length = std::min<std::uint64_t>(kPiece, plan.each - stream.at);
    if (plan.verified) {
      if (stream.at == stream.made_from + stream.piece.size()) {
        stream.piece.resize(length);
        packet::ChecksumSum unused;
        payload.copy(stream.number, stream.at, static_cast<std::uint32_t>(length), stream.piece.data(), unused);
        stream.made_from = stream.at;
      }
      bytes = stream.piece.data() + (stream.at - stream.made_from);
      length = stream.made_from + stream.piece.size() - stream.at;
    }
    const ssize_t sent = ::send(stream.socket, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) fail("send");
    stream.at += sent > 0 ? static_cast<std::uint64_t>(sent) : 0;
    if (stream.at != plan.each) return true;
    check(shutdown(stream.socket, SHUT_WR), "shutdown");
    return false;
  });
  std::uint8_t byte = 0;
  for (const Stream& stream : streams) {
    if (recv(stream.socket, &byte, 1, 0) != 0) fail("the receiver did not take all");
    close(stream.socket);
  }
}

double receive(const Plan& plan) {
  using Clock = std::chrono::steady_clock;
  const int listener = check(socket(AF_INET, SOCK_STREAM, 0), "socket");
  const int on = 1;
  check(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), "setsockopt");
  sockaddr_in own = plan.address;
  check(bind(listener, any(own), sizeof own), "bind");
  check(listen(listener, static_cast<int>(plan.connections)), "listen");
  fmt::print("ready\n");
  std::fflush(stdout);
  const stream::SeededPayload payload(1);
  std::vector<std::uint8_t> buffer(kPiece);
  std::vector<Stream> streams(plan.connections);
  for (Stream& stream : streams) {
    sockaddr_in peer{};
    socklen_t length = sizeof peer;
    stream.socket = check(accept(listener, any(peer), &length), "accept");
    stream.number = ntohs(peer.sin_port);
  }
  Clock::time_point first{}, last{};
  serve(streams, EPOLLIN, [&](Stream& stream) {
    const ssize_t got = recv(stream.socket, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) return true;
    if (got < 0) fail("recv");
    if (got == 0) return false;
    const auto length = static_cast<std::uint64_t>(got);
    if (first == Clock::time_point{}) first = Clock::now();
    if (plan.verified && payload.matching(stream.number, stream.at, {buffer.data(), length}) != length) {
      fmt::print(stderr, "a byte is wrong\n");
      std::exit(4);
    }
    last = Clock::now();
    stream.at += length;
    return true;
  });
  for (Stream& stream : streams) {
    if (stream.at != plan.each) {
      fmt::print(stderr, "{} of {} bytes came\n", stream.at, plan.each);
      std::exit(4);
    }
    close(stream.socket);
  }
  close(listener);
  return std::chrono::duration<double>(last - first).count();
}

}  // namespace

int main(int count, char** arguments) {
  const std::string_view role = count == 7 ? arguments[1] : "";
  const std::string_view how = count == 7 ? arguments[6] : "";
  Plan plan;
  plan.verified = how == "verified";
  plan.address.sin_family = AF_INET;
  bool right = (role == "send" || role == "receive") && (plan.verified || how == "plain");
  if (right) {
    plan.address.sin_port = htons(static_cast<std::uint16_t>(std::atoi(arguments[3])));
    plan.connections = static_cast<std::uint32_t>(std::atoi(arguments[4]));
    plan.each = plan.connections != 0 ? std::strtoull(arguments[5], nullptr, 10) / plan.connections : 0;
    right = inet_pton(AF_INET, arguments[2], &plan.address.sin_addr) == 1 && plan.each != 0;
  }
  if (!right) {
    fmt::print(stderr, "usage: stream_sockets send|receive ADDRESS PORT CONNECTIONS BYTES plain|verified\n");
    return 2;
  }
  if (role == "send") {
    send(plan);
  } else {
    fmt::print("{}\n", receive(plan));
  }
  return 0;
}
