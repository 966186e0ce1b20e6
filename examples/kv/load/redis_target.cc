// SPDX-License-Identifier: Apache-2.0
// The other server's protocol (RESP 2): as much of it as GET and SET need.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "target.h"

namespace kv {
namespace {

constexpr std::size_t kPiece = 1 << 16;  // bytes that are asked of the kernel at once

/// Owns a file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
};

struct Connection {
  explicit Connection(Descriptor with) : socket(std::move(with)) {}
  Descriptor socket;
  std::string out;
  std::size_t sent = 0;  ///< bytes of `out` that the kernel has
  std::string in;
  std::deque<std::size_t> asked;  ///< operations in the order of their answers
};

/// An answer at the front of some bytes.
struct Reply {
  bool ok = false;
  std::string_view value;
  std::size_t length = 0;  ///< of all of it
};

/// Nothing: there is not all of it yet.
std::optional<Reply> parse_reply(std::string_view bytes) {
  const std::size_t line = bytes.find("\r\n");
  if (line == std::string_view::npos) return std::nullopt;
  if (bytes[0] != '$') return Reply{bytes[0] == '+', {}, line + 2};
  int length = 0;
  (void)std::from_chars(bytes.data() + 1, bytes.data() + line, length);
  if (length < 0) return Reply{false, {}, line + 2};
  const std::size_t end = line + 2 + static_cast<std::size_t>(length) + 2;
  if (bytes.size() < end) return std::nullopt;
  return Reply{true, bytes.substr(line + 2, static_cast<std::size_t>(length)), end};
}

void append_word(std::string& to, std::string_view word) {
  to += '$';
  to += std::to_string(word.size());
  to += "\r\n";
  to += word;
  to += "\r\n";
}

class RedisTarget final : public Target {
 public:
  RedisTarget(Descriptor epoll, std::vector<Connection> connections, std::size_t outstanding)
      : epoll_(std::move(epoll)), connections_(std::move(connections)), outstanding_(outstanding) {}

  void read(std::size_t which, std::string_view key) override {
    Connection& connection = connections_[which / outstanding_];
    connection.out += "*2\r\n$3\r\nGET\r\n";
    append_word(connection.out, key);
    connection.asked.push_back(which);
  }
  void write(std::size_t which, std::string_view key, std::string_view value) override {
    Connection& connection = connections_[which / outstanding_];
    connection.out += "*3\r\n$3\r\nSET\r\n";
    append_word(connection.out, key);
    append_word(connection.out, value);
    connection.asked.push_back(which);
  }
  void scan(std::size_t, std::string_view, std::uint32_t) override {}
  void each_record(std::string_view, const TakeRecord&) const override {}

  bool turn(Ended& ended) override {
    for (Connection& connection : connections_)
      if (!send(connection)) return false;
    epoll_event events[64];
    const int count = ::epoll_wait(epoll_.number(), events, 64, 100);
    for (int i = 0; i < count; ++i)
      if (!receive(connections_[events[i].data.u64], ended)) return false;
    return true;
  }

 private:
  static bool send(Connection& connection) {
    while (connection.sent < connection.out.size()) {
      const ssize_t taken = ::send(connection.socket.number(), connection.out.data() + connection.sent,
                                   connection.out.size() - connection.sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (taken < 0) return errno == EAGAIN || errno == EINTR;
      connection.sent += static_cast<std::size_t>(taken);
    }
    connection.out.clear();
    connection.sent = 0;
    return true;
  }

  static bool receive(Connection& connection, Ended& ended) {
    const std::size_t before = connection.in.size();
    connection.in.resize(before + kPiece);
    const ssize_t came = ::recv(connection.socket.number(), connection.in.data() + before, kPiece, MSG_DONTWAIT);
    connection.in.resize(before + static_cast<std::size_t>(came > 0 ? came : 0));
    if (came == 0) return false;
    if (came < 0) return errno == EAGAIN || errno == EINTR;
    std::size_t at = 0;
    while (const auto reply = parse_reply(std::string_view(connection.in).substr(at))) {
      at += reply->length;
      const std::size_t which = connection.asked.front();
      connection.asked.pop_front();
      ended.ended(which, reply->ok, reply->value);
    }
    connection.in.erase(0, at);
    return true;
  }

  Descriptor epoll_;
  std::vector<Connection> connections_;
  std::size_t outstanding_;
};

std::unique_ptr<Target> failed(const char* what) {
  std::fprintf(stderr, "%s: %s\n", what, std::strerror(errno));
  return nullptr;
}

}  // namespace

std::unique_ptr<Target> open_redis(const warpline::SocketAddress& server, std::size_t connections,
                                   std::size_t outstanding, std::size_t /*answer_bytes*/) {
  const auto* v4 = std::get_if<warpline::Ipv4Address>(&server.address);
  if (v4 == nullptr) return std::fprintf(stderr, "Redis is asked over IPv4 here\n"), nullptr;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(server.port);
  std::memcpy(&address.sin_addr, v4->bytes.data(), sizeof address.sin_addr);
  Descriptor epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (epoll.number() < 0) return failed("epoll");
  std::vector<Connection> made;
  for (std::size_t i = 0; i < connections; ++i) {
    Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    if (socket.number() < 0 ||
        ::connect(socket.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::setsockopt(socket.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
      return failed("Redis");
    epoll_event event{.events = EPOLLIN, .data = {.u64 = i}};
    if (::epoll_ctl(epoll.number(), EPOLL_CTL_ADD, socket.number(), &event) != 0) return failed("epoll");
    made.emplace_back(std::move(socket));
  }
  return std::make_unique<RedisTarget>(std::move(epoll), std::move(made), outstanding);
}

}  // namespace kv
