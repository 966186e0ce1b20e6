// SPDX-License-Identifier: Apache-2.0
#include "kernel_subject.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/if_tun.h>
#include <linux/ipv6.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace warpline::stream_script {
namespace {

constexpr std::size_t kEthernet = 14;
constexpr int kPatience = 3000;  ///< ms that the kernel has for what an application waits for

Error failure(const std::string& what) {
  return environment_error("cannot ask the kernel's TCP", what + ": " + std::strerror(errno), "run as root");
}

/// Of the calling thread's network namespace.
bool set_sysctl(const std::string& name, int value) {
  const Handle file(::open(("/proc/sys/net/" + name).c_str(), O_WRONLY | O_CLOEXEC));
  const std::string text = std::to_string(value);
  return ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

bool set_option(int fd, int level, int name, int value) {
  return ::setsockopt(fd, level, name, &value, sizeof value) == 0;
}

sockaddr_storage socket_address(bool ipv6, std::uint16_t port) {
  sockaddr_storage storage{};
  if (ipv6) {
    auto* const address = reinterpret_cast<sockaddr_in6*>(&storage);
    address->sin6_family = AF_INET6;
    address->sin6_port = htons(port);
  } else {
    auto* const address = reinterpret_cast<sockaddr_in*>(&storage);
    address->sin_family = AF_INET;
    address->sin_port = htons(port);
  }
  return storage;
}

std::uint16_t port_of_peer(const sockaddr_storage& storage) {
  return storage.ss_family == AF_INET6 ? ntohs(reinterpret_cast<const sockaddr_in6&>(storage).sin6_port)
                                       : ntohs(reinterpret_cast<const sockaddr_in&>(storage).sin_port);
}

bool wait_for_input(int fd) {
  pollfd wait{fd, POLLIN, 0};
  return ::poll(&wait, 1, kPatience) == 1;
}

/// An IPv6 address becomes one's own some time after it was given: waits until what is sent to it arrives.
bool wait_until_local(const sockaddr_in6& address) {
  const Handle socket(::socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const auto* const where = reinterpret_cast<const sockaddr*>(&address);
  bool bound = false;
  for (int tries = 0; tries < kPatience; ++tries) {
    pollfd wait{socket.get(), POLLIN, 0};
    bound = bound || ::bind(socket.get(), where, sizeof address) == 0;
    if (bound) (void)::sendto(socket.get(), "", 1, 0, where, sizeof address);
    if (::poll(&wait, 1, 1) == 1) return true;
  }
  return false;
}

/// Gives the device its address, and sets it up.
bool set_address(ifreq& request, bool ipv6) {
  const Handle control(::socket(ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const int fd = control.get();
  if (ipv6) {
    ifreq loopback{};  // the kernel's way to addresses of its own
    std::strcpy(loopback.ifr_name, "lo");
    loopback.ifr_flags = IFF_UP | IFF_RUNNING;
    if (::ioctl(fd, SIOCSIFFLAGS, &loopback) != 0) return false;
    ifreq index = request;
    if (::ioctl(fd, SIOCGIFINDEX, &index) != 0) return false;
    in6_ifreq address{};
    const auto bytes = std::get<Ipv6Address>(ScriptWire::address(true, true)).bytes;
    std::memcpy(&address.ifr6_addr, bytes.data(), bytes.size());
    address.ifr6_prefixlen = 64;
    address.ifr6_ifindex = index.ifr_ifindex;
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    if (::ioctl(fd, SIOCSIFFLAGS, &request) != 0 || ::ioctl(fd, SIOCSIFADDR, &address) != 0) return false;
    sockaddr_in6 own{};
    own.sin6_family = AF_INET6;
    own.sin6_port = htons(ScriptWire::kPort);
    own.sin6_addr = address.ifr6_addr;
    return wait_until_local(own);
  }
  const auto set = [&](unsigned long what, std::uint32_t value) {
    auto* const address = reinterpret_cast<sockaddr_in*>(&request.ifr_addr);
    *address = {};
    address->sin_family = AF_INET;
    address->sin_addr.s_addr = htonl(value);
    return ::ioctl(fd, what, &request) == 0;
  };
  if (!set(SIOCSIFADDR, 0x0a00'0001) || !set(SIOCSIFNETMASK, 0xffff'ff00)) return false;
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  return ::ioctl(fd, SIOCSIFFLAGS, &request) == 0;
}

}  // namespace

Handle::~Handle() {
  if (fd_ >= 0) ::close(fd_);
}

Result<std::unique_ptr<KernelSubject>> KernelSubject::create(const Script& script) {
  if (::unshare(CLONE_NEWNET) != 0) return failure("no network namespace of its own");
  std::unique_ptr<KernelSubject> subject(new KernelSubject());
  WARPLINE_CHECK(subject->make_device(script));
  WARPLINE_CHECK(subject->listen(script));
  return subject;
}

Result<void> KernelSubject::make_device(const Script& script) {
  tun_ = Handle(::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  ifreq request{};
  std::strcpy(request.ifr_name, "tun0");
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  if (tun_.get() < 0 || ::ioctl(tun_.get(), TUNSETIFF, &request) != 0) return failure("no TUN device");
  // Challenges and answers to what is repeated are not held back; neither ECN nor cookies change what is said.
  const bool set = set_sysctl("ipv4/tcp_invalid_ratelimit", 0) && set_sysctl("ipv4/tcp_ecn", 0) &&
                   set_sysctl("ipv4/tcp_syncookies", script.settings.half_open == 0 ? 2 : 1) &&
                   set_sysctl("ipv6/conf/tun0/accept_dad", 0);
  if (!set) return failure("no settings of its own");
  {
    const Handle control(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq mtu = request;
    mtu.ifr_mtu = script.settings.mtu;
    if (::ioctl(control.get(), SIOCSIFMTU, &mtu) != 0) return failure("no such MTU");
  }
  if (!set_address(request, script.ipv6)) return failure("no address");
  return {};
}

Result<void> KernelSubject::listen(const Script& script) {
  const int family = script.ipv6 ? AF_INET6 : AF_INET;
  listener_ = Handle(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int fd = listener_.get();
  const sockaddr_storage address = socket_address(script.ipv6, ScriptWire::kPort);
  bool set = set_option(fd, SOL_SOCKET, SO_OOBINLINE, 1);
  if (script.settings.keepalive_idle.value != 0) {
    constexpr std::int64_t kSecond = 1'000'000'000;
    set =
        set && set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1) &&
        set_option(fd, SOL_TCP, TCP_KEEPIDLE, static_cast<int>(script.settings.keepalive_idle.value / kSecond)) &&
        set_option(fd, SOL_TCP, TCP_KEEPINTVL, static_cast<int>(script.settings.keepalive_interval.value / kSecond)) &&
        set_option(fd, SOL_TCP, TCP_KEEPCNT, static_cast<int>(script.settings.keepalive_probes));
  }
  const bool listens =
      set && ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 && ::listen(fd, 16) == 0;
  if (!listens) return failure("no socket that listens");
  begin_ = std::chrono::steady_clock::now();
  return {};
}

Nanos KernelSubject::now() const {
  return Nanos{std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin_).count()};
}

bool KernelSubject::take(Nanos until) {
  for (;;) {
    const std::int64_t left = std::max<std::int64_t>(until.value - now().value, 0);
    const timespec patience{left / 1'000'000'000, left % 1'000'000'000};
    pollfd wait{tun_.get(), POLLIN, 0};
    if (::ppoll(&wait, 1, &patience, nullptr) != 1) {
      if (now() >= until) return false;
      continue;
    }
    FrameBytes frame(kEthernet + 65536);
    const ssize_t length = ::read(tun_.get(), frame.data() + kEthernet, frame.size() - kEthernet);
    if (length <= 0) continue;
    frame.resize(kEthernet + static_cast<std::size_t>(length));
    // The TUN device has no Ethernet: the reader of frames finds what it would have.
    frame[12] = (frame[kEthernet] >> 4) == 6 ? 0x86 : 0x08;
    frame[13] = (frame[kEthernet] >> 4) == 6 ? 0xdd : 0x00;
    sent_.push_back(std::move(frame));
    return true;
  }
}

void KernelSubject::wait_until(Nanos time) {
  while (take(time)) {
  }
}

void KernelSubject::inject(FrameBytes frame) {
  (void)!::write(tun_.get(), frame.data() + kEthernet, frame.size() - kEthernet);
}

std::optional<FrameBytes> KernelSubject::receive(Nanos until) {
  if (sent_.empty() && !take(until)) return std::nullopt;
  FrameBytes frame = std::move(sent_.front());
  sent_.pop_front();
  return frame;
}

std::string KernelSubject::act(const Action& action) {
  using Kind = Action::Kind;
  if (action.kind == Kind::accept) return accept(action);
  // How the kernel counts, and where urgent data ends, is its own affair.
  if (action.kind == Kind::connections || action.kind == Kind::count || action.kind == Kind::urgent) return {};
  const auto found = accepted_.find(action.peer);
  if (found == accepted_.end()) return "the connection was not accepted";
  const int fd = found->second.get();
  switch (action.kind) {
    case Kind::read:
      return read(action, fd);
    case Kind::readable:
      return readable(action, fd);
    case Kind::abort: {
      const linger at_once{1, 0};
      (void)::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
      accepted_.erase(found);
      return {};
    }
    case Kind::close:
      accepted_.erase(found);
      return {};
    default:
      return ended(action, fd);
  }
}

std::string KernelSubject::accept(const Action& action) {
  while (!accepted_.contains(action.peer)) {
    sockaddr_storage peer{};
    socklen_t length = sizeof peer;
    if (!wait_for_input(listener_.get())) return "there is no connection";
    const int fd =
        ::accept4(listener_.get(), reinterpret_cast<sockaddr*>(&peer), &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return fmt::format("there is no connection: {}", std::strerror(errno));
    accepted_.insert_or_assign(port_of_peer(peer) - 40000U, Handle(fd));
    read_[port_of_peer(peer) - 40000U] = 0;
  }
  return {};
}

std::string KernelSubject::read(const Action& action, int fd) {
  std::uint64_t& offset = read_[action.peer];
  std::vector<std::uint8_t> bytes(action.number);
  for (std::size_t have = 0; have < bytes.size();) {
    if (!wait_for_input(fd)) return fmt::format("{} bytes can be read", have);
    const ssize_t length = ::recv(fd, bytes.data() + have, bytes.size() - have, 0);
    if (length <= 0) return fmt::format("{} bytes can be read", have);
    have += static_cast<std::size_t>(length);
  }
  for (const std::uint8_t byte : bytes) {
    const std::uint8_t right = action.fill.value_or(stream::testing::pattern_at(offset));
    if (byte != right) return fmt::format("byte {} of the stream is wrong", offset);
    ++offset;
  }
  return {};
}

std::string KernelSubject::readable(const Action& action, int fd) {
  int bytes = 0;
  const Nanos limit{now().value + kPatience * std::int64_t{1'000'000}};
  do {
    if (::ioctl(fd, FIONREAD, &bytes) != 0) return "it does not say how many bytes can be read";
    if (static_cast<std::uint64_t>(bytes) == action.number) return {};
  } while (now() < limit);
  return fmt::format("{} bytes can be read", bytes);
}

std::string KernelSubject::ended(const Action& action, int fd) {
  std::uint8_t byte = 0;
  if (!wait_for_input(fd)) return "the connection is open";
  const ssize_t length = ::recv(fd, &byte, 1, 0);
  if (length > 0) return "there is a byte to read";
  const int error = length == 0 ? 0 : errno;
  const int right = action.kind == Action::Kind::eof ? 0 : action.kind == Action::Kind::reset ? ECONNRESET : ETIMEDOUT;
  return error == right ? std::string{} : fmt::format("it says: {}", std::strerror(error));
}

}  // namespace warpline::stream_script
