// SPDX-License-Identifier: Apache-2.0
// Echoes of 32 bytes through the kernel's TCP with epoll, a thread at each end, for bench/message/peers. A request has
// its length before it, and its slot, which comes back; all that is there is read by one call and all that is due is
// written by one. tcp_echo server ADDRESS:PORT POLL_US; client ADDRESS:PORT CONNECTIONS OUTSTANDING SECONDS POLL_US
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "load.h"

namespace warpline::echo {
namespace {

constexpr std::size_t kPiece = 1 << 16;  // bytes that are asked of the kernel at once
constexpr std::uint32_t kLongest = 1 << 20;

struct Head {
  std::uint32_t length;  ///< of what follows
  std::uint32_t slot;
};

struct Connection {
  int socket = -1;
  bool writable = true;  ///< else epoll tells when it is
  std::vector<std::uint8_t> in = std::vector<std::uint8_t>(kPiece);
  std::size_t filled = 0;
  std::vector<std::uint8_t> out{};
  std::size_t sent = 0;  ///< bytes of `out` that the kernel has

  void add(std::uint32_t slot, const std::uint8_t* bytes, std::uint32_t length) {
    const Head head{length, slot};
    const std::size_t at = out.size();
    out.resize(at + sizeof head + length);
    std::memcpy(out.data() + at, &head, sizeof head);
    std::memcpy(out.data() + at + sizeof head, bytes, length);
  }
};

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::_Exit(3);
}

/// Connections, and what epoll says of them.
class Loop {
 public:
  explicit Loop(std::chrono::microseconds poll) : epoll_(::epoll_create1(EPOLL_CLOEXEC)), patience_(poll) {
    if (epoll_ < 0) fail("epoll");
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop() { ::close(epoll_); }

  void watch(int socket, void* what, int operation, std::uint32_t events) const {
    epoll_event event{.events = events, .data = {.ptr = what}};
    if (::epoll_ctl(epoll_, operation, socket, &event) != 0) fail("epoll");
  }
  void add(Connection& connection) const {
    const int on = 1;
    if (::setsockopt(connection.socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) fail("TCP_NODELAY");
    watch(connection.socket, &connection, EPOLL_CTL_ADD, EPOLLIN);
  }
  std::span<epoll_event> wait() {
    int count = 0;
    while (count == 0) {
      const bool sleeps = patience_.is_over();
      count = ::epoll_wait(epoll_, events_.data(), static_cast<int>(events_.size()), sleeps ? -1 : 0);
    }
    if (count < 0) fail("epoll");
    patience_.worked();
    return std::span(events_).first(static_cast<std::size_t>(count));
  }
  /// Writes what is due, as far as the kernel takes it. False: the peer is gone.
  bool flush(Connection& connection) const {
    while (connection.sent < connection.out.size()) {
      const ssize_t taken = ::send(connection.socket, connection.out.data() + connection.sent,
                                   connection.out.size() - connection.sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (taken < 0 && errno != EAGAIN) return false;
      if (taken < 0) break;
      connection.sent += static_cast<std::size_t>(taken);
    }
    const bool all = connection.sent == connection.out.size();
    if (all) {
      connection.out.clear();
      connection.sent = 0;
    }
    if (all != connection.writable) {
      connection.writable = all;
      watch(connection.socket, &connection, EPOLL_CTL_MOD, all ? EPOLLIN : EPOLLIN | EPOLLOUT);
    }
    return true;
  }

 private:
  int epoll_;
  Patience patience_;
  std::array<epoll_event, 64> events_{};
};

/// Reads what is there and calls `take(slot, bytes, length)` for each whole request or answer. False: the peer is gone.
template <typename Take>
bool receive(Connection& connection, const Take& take) {
  const ssize_t came = ::recv(connection.socket, connection.in.data() + connection.filled,
                              connection.in.size() - connection.filled, MSG_DONTWAIT);
  if (came < 0) return errno == EAGAIN;
  if (came == 0) return false;
  connection.filled += static_cast<std::size_t>(came);
  std::size_t at = 0;
  while (connection.filled - at >= sizeof(Head)) {
    Head head;
    std::memcpy(&head, connection.in.data() + at, sizeof head);
    if (head.length > kLongest) return false;
    if (connection.in.size() < sizeof head + head.length) connection.in.resize(sizeof head + head.length);
    if (connection.filled - at < sizeof head + head.length) break;
    take(head.slot, connection.in.data() + at + sizeof head, head.length);
    at += sizeof head + head.length;
  }
  connection.filled -= at;
  if (at != 0) std::memmove(connection.in.data(), connection.in.data() + at, connection.filled);
  return true;
}

sockaddr_in parse(const char* words) {
  const std::string_view text = words;
  const std::size_t colon = text.rfind(':');
  sockaddr_in address{};
  address.sin_family = AF_INET;
  if (colon == std::string_view::npos ||
      ::inet_pton(AF_INET, std::string(text.substr(0, colon)).c_str(), &address.sin_addr) != 1) {
    std::fprintf(stderr, "%s is no ADDRESS:PORT\n", words);
    std::exit(2);
  }
  address.sin_port = htons(static_cast<std::uint16_t>(std::atoi(words + colon + 1)));
  return address;
}

int serve(const char* address, std::chrono::microseconds poll) {
  sockaddr_in here = parse(address);
  socklen_t length = sizeof here;
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0 || ::bind(listener, reinterpret_cast<const sockaddr*>(&here), sizeof here) != 0 ||
      ::listen(listener, 128) != 0 || ::getsockname(listener, reinterpret_cast<sockaddr*>(&here), &length) != 0)
    fail("listen");
  Loop loop(poll);
  loop.watch(listener, nullptr, EPOLL_CTL_ADD, EPOLLIN);
  std::printf("listening on port %u\n", ntohs(here.sin_port));
  std::fflush(stdout);
  for (;;) {
    for (const epoll_event& event : loop.wait()) {
      auto* const connection = static_cast<Connection*>(event.data.ptr);
      if (connection == nullptr) {
        const int socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        if (socket >= 0) loop.add(*new Connection{.socket = socket});
        continue;
      }
      const auto echo = [&](std::uint32_t slot, const std::uint8_t* bytes, std::uint32_t count) {
        connection->add(slot, bytes, count);
      };
      if (!receive(*connection, echo) || !loop.flush(*connection)) {
        ::close(connection->socket);
        delete connection;
      }
    }
  }
}

int ask(const char* server, const Plan& plan) {
  const sockaddr_in there = parse(server);
  Loop loop(plan.poll);
  std::vector<Connection> connections(plan.connections);
  for (Connection& connection : connections) {
    connection.socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection.socket < 0 ||
        ::connect(connection.socket, reinterpret_cast<const sockaddr*>(&there), sizeof there) != 0)
      fail("connect");
    loop.add(connection);
  }
  Load load(plan);
  load.measure([&] {
    std::size_t open = plan.slots();
    for (std::size_t slot = 0; slot < open; ++slot)
      connections[slot / plan.outstanding].add(static_cast<std::uint32_t>(slot), load.next(slot).data(), kBytes);
    for (Connection& connection : connections) (void)loop.flush(connection);
    while (open != 0) {
      for (const epoll_event& event : loop.wait()) {
        Connection& connection = *static_cast<Connection*>(event.data.ptr);
        const auto answered = [&](std::uint32_t slot, const std::uint8_t* bytes, std::uint32_t length) {
          if (slot >= plan.slots()) Load::fail("an answer to no request");
          if (load.ended(slot, bytes, length)) {
            connection.add(slot, load.next(slot).data(), kBytes);
          } else {
            --open;
          }
        };
        if (!receive(connection, answered) || !loop.flush(connection)) Load::fail("the server is gone");
      }
    }
  });
  return 0;
}

}  // namespace
}  // namespace warpline::echo

// NOLINTNEXTLINE(bugprone-exception-escape): what is thrown ends the program
int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "server" && argc == 4) return warpline::echo::serve(argv[2], warpline::echo::parse_poll(argv[3]));
  if (what == "client" && argc == 7) return warpline::echo::ask(argv[2], warpline::echo::parse_plan(argv + 3));
  std::fprintf(stderr,
               "usage: %s server ADDRESS:PORT POLL_US | client ADDRESS:PORT CONNECTIONS OUTSTANDING SECONDS POLL_US\n",
               argv[0]);
  return 2;
}
