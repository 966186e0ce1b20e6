// SPDX-License-Identifier: Apache-2.0
#include "warpline/capture/attached/attach_socket.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace warpline::capture {
namespace {

constexpr int kKind = SOCK_SEQPACKET | SOCK_CLOEXEC;
constexpr int kBacklog = 4;

/// Calls `use` with the address of a path; ENAMETOOLONG if it has none. Returns 0, or errno.
template <typename Use>
int with_address(const std::string& path, Use&& use) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return ENAMETOOLONG;
  path.copy(address.sun_path, path.size());
  return use(reinterpret_cast<const sockaddr*>(&address), socklen_t{sizeof address}) == 0 ? 0 : errno;
}

}  // namespace

AttachSocket::~AttachSocket() {
  if (file_ >= 0) close(file_);
}

Result<AttachSocket> AttachSocket::listen(const std::string& path) {
  AttachSocket made(socket(AF_UNIX, kKind | SOCK_NONBLOCK, 0));
  unlink(path.c_str());
  int problem =
      with_address(path, [&](const sockaddr* address, socklen_t size) { return bind(made.file_, address, size); });
  if (problem == 0 && (chmod(path.c_str(), 0600) != 0 || ::listen(made.file_, kBacklog) != 0)) problem = errno;
  if (problem == 0) return made;
  return environment_error("cannot let captures attach", fmt::format("{}: {}", path, std::strerror(problem)),
                           "choose another --telemetry name, or leave it out");
}

Result<AttachSocket> AttachSocket::connect(const std::string& path) {
  AttachSocket made(socket(AF_UNIX, kKind, 0));
  const int problem =
      with_address(path, [&](const sockaddr* address, socklen_t size) { return ::connect(made.file_, address, size); });
  if (problem == 0) return made;
  return environment_error("cannot attach to the process", fmt::format("{}: {}", path, std::strerror(problem)),
                           "attach as its user to forward or l3forward, without -m device");
}

std::optional<AttachSocket> AttachSocket::accept() const {
  const int file = accept4(file_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (file < 0) return std::nullopt;
  return AttachSocket(file);
}

bool AttachSocket::send(std::span<const std::uint8_t> bytes, int descriptor) const {
  iovec piece{.iov_base = const_cast<std::uint8_t*>(bytes.data()), .iov_len = bytes.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof descriptor)> control{};
  if (descriptor >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
  }
  return sendmsg(file_, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(bytes.size());
}

void AttachSocket::end_sending() const { shutdown(file_, SHUT_WR); }

AttachSocket::Received AttachSocket::receive() const {
  AttachBytes bytes(kLargestAttachMessage);
  iovec piece{.iov_base = bytes.data(), .iov_len = bytes.size()};
  msghdr message{};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t size = recvmsg(file_, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return {};
  Received received{.ended = size <= 0};
  const cmsghdr* const head = CMSG_FIRSTHDR(&message);
  if (size > 0 && head != nullptr && head->cmsg_type == SCM_RIGHTS && head->cmsg_len == CMSG_LEN(sizeof(int))) {
    std::memcpy(&received.descriptor, CMSG_DATA(head), sizeof(int));
  }
  if (size > 0) {
    bytes.resize(static_cast<std::size_t>(size));
    received.bytes = std::move(bytes);
  }
  return received;
}

void AttachSocket::wait(int milliseconds) const {
  pollfd ready{.fd = file_, .events = POLLIN, .revents = 0};
  poll(&ready, 1, milliseconds);
}

}  // namespace warpline::capture
