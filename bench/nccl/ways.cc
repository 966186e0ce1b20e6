// SPDX-License-Identifier: Apache-2.0
#include "ways.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "nccl/stand_in_testing.h"

namespace warpline::bench_nccl {
namespace {

constexpr std::size_t kUnderWay = 8;  ///< transfers at once, as NCCL has (NCCL_STEPS)

void check(nccl::Status status, const char* call) {
  if (status != nccl::Status::success) fail(std::string(call) + " says " + std::to_string(static_cast<int>(status)));
}

class PluginWay final : public Way {
 public:
  PluginWay(const std::string& file, int peer) : net_(nccl::NetStandIn::load(file.c_str(), 11)) {
    if (!net_) fail("there is no plugin " + file);
    check(net_->init(), "init()");
    std::array<std::uint8_t, nccl::kHandleBytes> handle{};
    void* listener = nullptr;
    check(net_->listen(0, handle.data(), &listener), "listen()");
    tell(peer, handle.data(), handle.size());
    hear(peer, handle.data(), handle.size());
    while (sender_ == nullptr || receiver_ == nullptr) {
      if (sender_ == nullptr) check(net_->connect(0, handle.data(), &sender_), "connect()");
      if (receiver_ == nullptr) check(net_->accept(listener, &receiver_), "accept()");
    }
    check(net_->close_listen(listener), "closeListen()");
  }
  ~PluginWay() override {
    (void)net_->close_send(sender_);
    (void)net_->close_receive(receiver_);
    (void)net_->finalize();
  }
  PluginWay(const PluginWay&) = delete;
  PluginWay& operator=(const PluginWay&) = delete;

  void ping_pong(std::vector<std::uint8_t>& bytes, std::size_t count, int rank) override {
    void* receiving = begin_receive(bytes);  // posted early, as NCCL does
    for (std::size_t i = 0; i < count; ++i) {
      if (rank == 0) wait(begin_send(bytes));
      wait(receiving);
      if (i + 1 < count) receiving = begin_receive(bytes);
      if (rank == 1) wait(begin_send(bytes));
    }
  }

  void send(const std::vector<std::uint8_t>& bytes, std::size_t count) override {
    std::array<void*, kUnderWay> requests{};
    for (std::size_t i = 0; i < count + kUnderWay; ++i) {
      void*& request = requests[i % kUnderWay];
      if (request != nullptr) wait(request);
      request = i < count ? begin_send(bytes) : nullptr;
    }
  }

  void receive(std::vector<std::uint8_t>& bytes, std::size_t count) override {
    // Into rooms of their own, as NCCL's steps are.
    std::vector<std::vector<std::uint8_t>> rooms(kUnderWay - 1, std::vector<std::uint8_t>(bytes.size()));
    std::array<void*, kUnderWay> requests{};
    for (std::size_t i = 0; i < count + kUnderWay; ++i) {
      void*& request = requests[i % kUnderWay];
      if (request != nullptr) wait(request);
      const std::size_t to_last = count - 1 - std::min(i, count - 1);
      request = i < count ? begin_receive(to_last % kUnderWay == 0 ? bytes : rooms[to_last % kUnderWay - 1]) : nullptr;
    }
  }

 private:
  void* begin_send(const std::vector<std::uint8_t>& bytes) {
    void* request = nullptr;
    auto* const data = const_cast<std::uint8_t*>(bytes.data());  // NOLINT: NCCL's interface has it so
    while (request == nullptr) check(net_->send(sender_, data, bytes.size(), 0, nullptr, &request), "isend()");
    return request;
  }
  void* begin_receive(std::vector<std::uint8_t>& bytes) {
    void* request = nullptr;
    void* data = bytes.data();
    void* memory = nullptr;
    std::size_t room = bytes.size();
    int tag = 0;
    while (request == nullptr) check(net_->receive(receiver_, 1, &data, &room, &tag, &memory, &request), "irecv()");
    return request;
  }
  void wait(void* request) {
    while (true) {
      int done = 0;
      check(net_->test(request, &done, nullptr), "test()");
      if (done != 0) return;
      ::sched_yield();  // as NCCL's proxy thread does when nothing has moved
    }
  }

  std::unique_ptr<nccl::NetStandIn> net_;
  void* sender_ = nullptr;
  void* receiver_ = nullptr;
};

class TcpWay final : public Way {
 public:
  TcpWay(int peer, int rank, std::size_t sockets) {
    if (rank == 0) {
      listen(peer, sockets);
    } else {
      connect(peer, sockets);
    }
    for (const int socket : sockets_) {
      const int one = 1;
      const int buffer = 4 << 20;
      (void)::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
      (void)::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
      (void)::setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
    }
  }

  /// By one socket, which is asked again and again, as NCCL does.
  void ping_pong(std::vector<std::uint8_t>& bytes, std::size_t count, int rank) override {
    for (std::size_t i = 0; i < count; ++i) {
      if (rank == 0) put(0, bytes.data(), bytes.size(), MSG_DONTWAIT);
      get(0, bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (rank == 1) put(0, bytes.data(), bytes.size(), MSG_DONTWAIT);
    }
  }

  void send(const std::vector<std::uint8_t>& bytes, std::size_t count) override {
    on_all(
        [&](std::size_t socket, std::size_t from, std::size_t length) {
          for (std::size_t i = 0; i < count; ++i) put(socket, bytes.data() + from, length, 0);
          std::uint8_t last = 0;
          get(socket, &last, 1, 0);
        },
        bytes.size());
  }

  void receive(std::vector<std::uint8_t>& bytes, std::size_t count) override {
    on_all(
        [&](std::size_t socket, std::size_t from, std::size_t length) {
          for (std::size_t i = 0; i < count; ++i) get(socket, bytes.data() + from, length, 0);
          const std::uint8_t last = 1;
          put(socket, &last, 1, 0);
        },
        bytes.size());
  }

 private:
  void listen(int peer, std::size_t sockets) {
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof at;
    if (::bind(listener, reinterpret_cast<const sockaddr*>(&at), length) != 0 || ::listen(listener, 64) != 0 ||
        ::getsockname(listener, reinterpret_cast<sockaddr*>(&at), &length) != 0)
      fail("a TCP port");
    tell(peer, &at.sin_port, sizeof at.sin_port);
    for (std::size_t i = 0; i < sockets; ++i) sockets_.push_back(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  }
  void connect(int peer, std::size_t sockets) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    hear(peer, &to.sin_port, sizeof to.sin_port);
    for (std::size_t i = 0; i < sockets; ++i) {
      sockets_.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (::connect(sockets_.back(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) fail("a TCP connection");
    }
  }

  /// Each socket has a share of every transfer, and a thread.
  template <typename Work>
  void on_all(const Work& work, std::size_t bytes) {
    std::vector<std::thread> threads;
    const std::size_t used = bytes < sockets_.size() * 4096 ? 1 : sockets_.size();
    const std::size_t share = (bytes + used - 1) / used;
    for (std::size_t i = 1; i < used; ++i) threads.emplace_back(work, i, i * share, std::min(share, bytes - i * share));
    work(0, 0, std::min(share, bytes));
    for (std::thread& thread : threads) thread.join();
  }

  void put(std::size_t socket, const std::uint8_t* bytes, std::size_t length, int flags) {
    while (length != 0) {
      const ssize_t sent = ::send(sockets_[socket], bytes, length, flags | MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN && errno != EINTR) fail("TCP send");
      if (sent < 0) {
        ::sched_yield();
        continue;
      }
      bytes += sent;
      length -= static_cast<std::size_t>(sent);
    }
  }
  void get(std::size_t socket, std::uint8_t* bytes, std::size_t length, int flags) {
    while (length != 0) {
      const ssize_t got = ::recv(sockets_[socket], bytes, length, flags);
      if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) fail("TCP receive");
      if (got < 0) {
        ::sched_yield();
        continue;
      }
      bytes += got;
      length -= static_cast<std::size_t>(got);
    }
  }

  std::vector<int> sockets_;
};

}  // namespace

std::unique_ptr<Way> make_plugin_way(const std::string& file, int peer) {
  return std::make_unique<PluginWay>(file, peer);
}

std::unique_ptr<Way> make_tcp_way(int peer, int rank, std::size_t sockets) {
  return std::make_unique<TcpWay>(peer, rank, sockets);
}

void tell(int peer, const void* bytes, std::size_t length) {
  if (::send(peer, bytes, length, MSG_NOSIGNAL) != static_cast<ssize_t>(length)) fail("the other process is gone");
}

void hear(int peer, void* bytes, std::size_t length) {
  if (::recv(peer, bytes, length, MSG_WAITALL) != static_cast<ssize_t>(length)) fail("the other process is gone");
}

void fail(const std::string& what) {
  (void)std::fprintf(stderr, "nccl_transfers: %s\n", what.c_str());
  std::_Exit(1);
}

}  // namespace warpline::bench_nccl
