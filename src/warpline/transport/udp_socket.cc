// SPDX-License-Identifier: Apache-2.0
#include "warpline/transport/udp_socket.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>
#include <vector>

#include "warpline/transport/internal/socket_addresses.h"
#include "warpline/transport/internal/socket_errors.h"
#include "warpline/transport/internal/socket_steering.h"

// Constants of newer kernel headers (linux/udp.h).
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

namespace warpline::transport {
namespace {

constexpr std::size_t kMaxUdpSegments = 64;      ///< UDP_MAX_SEGMENTS of kernels before 6.9, and of UDP_GRO
constexpr std::uint32_t kMaxAggregate = 65'000;  ///< bytes: below IP's limit with headers
constexpr std::uint32_t kCopyUpTo = 256;         ///< cheaper than a piece of its own
constexpr std::uint8_t kEcnCapable = 2;          ///< ECT(0), RFC 3168
constexpr std::uint8_t kEcnMask = 3;
constexpr std::int64_t kSecond = 1'000'000'000;       ///< ns
constexpr std::int64_t kLongestWait = 20'000'000;     ///< ns: a stop flag is looked at so often
constexpr std::int64_t kLongestSleep = 10 * kSecond;  ///< with somebody who wakes
constexpr std::size_t kReceiveBatch = 32;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kErrorsAtOnce = 16;
constexpr std::uint32_t kMostErrors = 256;             ///< that are read in a period
constexpr std::int64_t kErrorPeriod = 100'000'000;     ///< ns
constexpr std::int64_t kSegmentsAgain = 60 * kSecond;  ///< until UDP_SEGMENT is tried again
constexpr std::size_t kRepeatedBytes = 64;             ///< of a datagram, by what says that it did not arrive

bool set(int handle, int level, int name, int value) {
  return setsockopt(handle, level, name, &value, sizeof(value)) == 0;
}

template <typename T>
void add_control(msghdr& message, int level, int type, T value) {
  auto* const header =
      reinterpret_cast<cmsghdr*>(static_cast<std::uint8_t*>(message.msg_control) + message.msg_controllen);
  header->cmsg_level = level;
  header->cmsg_type = type;
  header->cmsg_len = CMSG_LEN(sizeof(T));
  std::memcpy(CMSG_DATA(header), &value, sizeof(T));
  message.msg_controllen += CMSG_SPACE(sizeof(T));
}

/// One of this machine's addresses, IPv4 ones as IPv4-mapped.
struct OwnAddress {
  in6_addr ip{};
  std::uint32_t interface = 0;  ///< of a link-local one
  bool operator==(const OwnAddress& other) const {
    return std::memcmp(&ip, &other.ip, sizeof ip) == 0 && interface == other.interface;
  }
};

/// The own address is as a datagram's control message has it. Nobody answers from an address of many.
OwnAddress own_address(const in6_pktinfo& info) {
  if (IN6_IS_ADDR_MULTICAST(&info.ipi6_addr)) return {};
  return {info.ipi6_addr, IN6_IS_ADDR_LINKLOCAL(&info.ipi6_addr) ? info.ipi6_ifindex : 0};
}
OwnAddress own_address(const in_pktinfo& info) {
  OwnAddress own;
  std::memcpy(own.ip.s6_addr, kMappedPrefix.data(), kMappedPrefix.size());
  std::memcpy(own.ip.s6_addr + kMappedPrefix.size(), &info.ipi_spec_dst, sizeof info.ipi_spec_dst);
  return own;
}

/// What the kernel says about a datagram or several.
struct Notes {
  std::uint8_t ecn = 0;
  std::uint32_t segment = 0;   ///< bytes of each of several; 0: it is one
  std::uint32_t overflow = 0;  ///< datagrams lost by this socket so far
  timespec arrived{};          ///< of CLOCK_REALTIME; 0: it did not say
  OwnAddress own;              ///< that it was sent to; zeros: it did not say
};

Notes read_control(msghdr& message) {
  Notes notes;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    const bool tos = header->cmsg_level == IPPROTO_IP && header->cmsg_type == IP_TOS;
    const bool traffic_class = header->cmsg_level == IPPROTO_IPV6 && header->cmsg_type == IPV6_TCLASS;
    int value = 0;
    // IP_TOS comes as one byte, the others as an int.
    std::memcpy(&value, CMSG_DATA(header), std::min<std::size_t>(header->cmsg_len - CMSG_LEN(0), sizeof(value)));
    if (tos || traffic_class) notes.ecn = static_cast<std::uint8_t>(value) & kEcnMask;
    if (header->cmsg_level == IPPROTO_UDP && header->cmsg_type == UDP_GRO)
      notes.segment = static_cast<std::uint32_t>(value);
    if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SO_RXQ_OVFL)
      notes.overflow = static_cast<std::uint32_t>(value);
    if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_TIMESTAMPNS)
      std::memcpy(&notes.arrived, CMSG_DATA(header), sizeof(notes.arrived));
    if (header->cmsg_level == IPPROTO_IP && header->cmsg_type == IP_PKTINFO) {
      in_pktinfo info;
      std::memcpy(&info, CMSG_DATA(header), sizeof info);
      notes.own = own_address(info);
    }
    if (header->cmsg_level == IPPROTO_IPV6 && header->cmsg_type == IPV6_PKTINFO) {
      in6_pktinfo info;
      std::memcpy(&info, CMSG_DATA(header), sizeof info);
      notes.own = own_address(info);
    }
  }
  return notes;
}

std::int64_t nanoseconds(const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; }

constexpr std::size_t kReceiveControl =
    3 * CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(timespec)) + CMSG_SPACE(sizeof(in6_pktinfo));
constexpr std::size_t kSendControl =
    CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(std::uint16_t)) + CMSG_SPACE(sizeof(in6_pktinfo));
constexpr std::size_t kOwnAddresses = 256;  ///< that are told apart; from the others any is answered

constexpr std::size_t rounded_to_line(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

/// All that the calls write to, taken at once.
struct UdpSocket::Buffers {
  struct In {
    alignas(cmsghdr) std::array<std::uint8_t, kReceiveControl> control;
    AnyAddress from;
    iovec piece;
  };
  struct Out {
    alignas(cmsghdr) std::array<std::uint8_t, kSendControl> control;
    AnyAddress to;
    std::size_t datagrams;
  };

  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::size_t page_bytes = 0;
  std::unique_ptr<void, Free> pages;  ///< what arrives, then heads
  std::vector<mmsghdr> in_messages{kReceiveBatch};
  std::vector<In> in{kReceiveBatch};
  std::vector<message::Datagram> datagrams;
  std::size_t in_used = kReceiveBatch;  ///< messages whose lengths the kernel has overwritten

  std::vector<message::Outgoing> outgoing;
  std::vector<iovec> pieces;
  std::vector<mmsghdr> out_messages;
  std::vector<Out> out;

  std::vector<OwnAddress> own;  ///< that peers have sent to: by PeerAddress::local, from 1
  std::uint16_t own_last = 0;   ///< of the datagram before

  /// The number of an address, which it is given when it is seen first; 0 if there are too many.
  std::uint16_t number_of(const OwnAddress& address) {
    if (own_last != 0 && own[own_last - 1U] == address) return own_last;
    const auto known = std::find(own.begin(), own.end(), address);
    if (known == own.end()) {
      if (address == OwnAddress{} || own.size() == kOwnAddresses) return 0;
      own.push_back(address);  // there is room: it was reserved
      return own_last = static_cast<std::uint16_t>(own.size());
    }
    return own_last = static_cast<std::uint16_t>(known - own.begin() + 1);
  }

  std::array<std::array<std::uint8_t, kRepeatedBytes>, kErrorsAtOnce> repeated;  ///< by what `unreachable` says
  std::array<message::Unreachable, kErrorsAtOnce> unreachable;
  std::size_t unreachable_count = 0;  ///< not handed out yet

  std::vector<std::uint64_t> tokens;  ///< tokens of completed payloads in [0, done)
  std::size_t done = 0;
};

UdpSocket::UdpSocket(int handle, std::uint16_t port, bool v6, const UdpSocketConfig& config, bool aggregates)
    : handle_(handle),
      port_(port),
      v6_(v6),
      aggregates_(aggregates),
      segments_(aggregates),
      buffers_(std::make_unique<Buffers>()) {
  Buffers& buffers = *buffers_;
  const std::size_t slot = aggregates ? 65'536 : rounded_to_line(config.datagram_bytes);
  const std::size_t head = rounded_to_line(std::max(config.datagram_bytes, message::kMinHeadCapacity));
  buffers.page_bytes = (kReceiveBatch * slot + config.batch * head + kPage - 1) / kPage * kPage;
  buffers.pages.reset(std::aligned_alloc(kPage, buffers.page_bytes));
  if (buffers.pages == nullptr) throw std::bad_alloc();
  auto* const arrived = static_cast<std::uint8_t*>(buffers.pages.get());
  std::uint8_t* const heads = arrived + kReceiveBatch * slot;
  buffers.datagrams.resize(kReceiveBatch * (aggregates ? kMaxUdpSegments : 1));
  for (std::size_t i = 0; i < kReceiveBatch; ++i) {
    Buffers::In& in = buffers.in[i];
    in.piece = {arrived + i * slot, slot};
    msghdr& header = buffers.in_messages[i].msg_hdr;
    header = {};
    header.msg_name = &in.from;
    header.msg_iov = &in.piece;
    header.msg_iovlen = 1;
    header.msg_control = in.control.data();
  }
  buffers.outgoing.resize(config.batch);
  for (std::size_t i = 0; i < config.batch; ++i) {
    buffers.outgoing[i].head = heads + i * head;
    buffers.outgoing[i].head_capacity = static_cast<std::uint32_t>(head);
    buffers.outgoing[i].copy_up_to = kCopyUpTo;
  }
  buffers.pieces.resize(2 * config.batch);
  buffers.out_messages.resize(config.batch);
  buffers.out.resize(config.batch);
  buffers.tokens.resize(config.batch);
  buffers.own.reserve(kOwnAddresses);
}

UdpSocket::~UdpSocket() { ::close(handle_); }

std::span<std::byte> UdpSocket::memory() const {
  return {static_cast<std::byte*>(buffers_->pages.get()), buffers_->page_bytes};
}

Result<std::unique_ptr<UdpSocket>> UdpSocket::open(const UdpSocketConfig& config) {
  return bind(config, Sharing::none);
}

Result<std::vector<std::unique_ptr<UdpSocket>>> UdpSocket::open_group(const UdpSocketConfig& config,
                                                                      std::uint32_t count) {
  const std::string what = fmt::format("{} UDP sockets {}", count, to_string(config.local));
  if (count == 0 || count > 256) return usage_error(what, "an endpoint's number is a byte", "use 1 to 256");
  const auto failed = [&] {
    return environment_error(what, fmt::format("no steering among them: {}", std::strerror(errno)),
                             "use one socket, or Linux 4.5 or newer");
  };
  std::vector<std::unique_ptr<UdpSocket>> group;
  UdpSocketConfig next = config;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Sharing others = i == 0 ? Sharing::first_of_group : Sharing::next_of_group;
    WARPLINE_TRY(auto socket, bind(next, count == 1 ? Sharing::none : others));
    next.local.port = socket->port();
    group.push_back(std::move(socket));
  }
  if (count == 1) return group;
  if (!steer_by_endpoint(group.front()->handle_, count)) return failed();
  for (const auto& socket : group) {
    if (!open_socket_filter(socket->handle_)) return failed();
  }
  return group;
}

Result<std::unique_ptr<UdpSocket>> UdpSocket::bind(const UdpSocketConfig& config, Sharing sharing) {
  AnyAddress local;
  const socklen_t length = local_address(config.local, local);
  const bool v6 = local.base.sa_family == AF_INET6;
  const std::string what = fmt::format("UDP socket {}", to_string(config.local));
  const int handle = ::socket(local.base.sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (handle < 0)
    return environment_error(what, std::strerror(errno), "raise `ulimit -n`, or use the other IP version");
  const auto failed = [&](std::string fix) {
    const Error error = environment_error(what, std::strerror(errno), std::move(fix));
    ::close(handle);
    return error;
  };
  if (v6 && !set(handle, IPPROTO_IPV6, IPV6_V6ONLY, 0)) return failed("use an IPv4 address");
  if (sharing != Sharing::none && !close_socket_filter(handle)) return failed("use one socket");
  if (sharing == Sharing::next_of_group && !set(handle, SOL_SOCKET, SO_REUSEPORT, 1)) return failed("use one socket");
  // Each of these makes it better; none is needed.
  const int buffer = static_cast<int>(config.buffer_bytes);
  for (const auto& [forced, plain] : {std::pair{SO_RCVBUFFORCE, SO_RCVBUF}, std::pair{SO_SNDBUFFORCE, SO_SNDBUF}}) {
    if (!set(handle, SOL_SOCKET, forced, buffer)) (void)set(handle, SOL_SOCKET, plain, buffer);
  }
  // Datagrams are as long as the endpoint has found out that the path carries, and not cut on the way.
  (void)set(handle, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
  if (v6) (void)set(handle, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
  (void)set(handle, SOL_SOCKET, SO_RXQ_OVFL, 1);
  (void)set(handle, SOL_SOCKET, SO_TIMESTAMPNS, 1);
  (void)set(handle, IPPROTO_IP, IP_RECVTOS, 1);
  if (v6) (void)set(handle, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
  if (is_any(local)) {  // so that who asked one of many addresses is answered from that one
    (void)set(handle, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_RECVPKTINFO : IP_PKTINFO, 1);
  }
  // Without it the kernel keeps to itself what ICMP says of datagrams that were sent.
  report_errors(handle, v6, true);
  const bool aggregates = config.aggregate && set(handle, IPPROTO_UDP, UDP_GRO, 1);
  if (::bind(handle, &local.base, length) != 0) {
    return failed(errno == EADDRINUSE ? "use another port, or end the program that has it"
                                      : "use an address of this machine; `ip address` shows them");
  }
  // The first of a group is bound like one that shares with nobody, so that the port is no other program's.
  if (sharing == Sharing::first_of_group && !set(handle, SOL_SOCKET, SO_REUSEPORT, 1)) return failed("use one socket");
  AnyAddress bound;
  socklen_t bound_length = sizeof(bound);
  if (::getsockname(handle, &bound.base, &bound_length) != 0) return failed("run `warpline doctor`");
  return std::unique_ptr<UdpSocket>(new UdpSocket(handle, peer_of(bound).port, v6, config, aggregates));
}

/// Reads the errors that the kernel has queued about datagrams sent earlier. Calls about other datagrams return them.
void UdpSocket::read_errors() {
  Buffers& buffers = *buffers_;
  unreachable_ = {};  // it lies where this writes
  errors_wait_ = true;
  while (buffers.unreachable_count < kErrorsAtOnce) {
    auto& bytes = buffers.repeated[buffers.unreachable_count];
    const SocketError error = next_error(handle_, bytes);
    if (error.kind == SocketError::Kind::none) {
      errors_wait_ = false;
      break;
    }
    if (error.kind == SocketError::Kind::local) continue;
    const bool unreachable = error.kind == SocketError::Kind::unreachable;
    (unreachable ? counters_.unreachable : counters_.icmp_other).add(1);
    if (unreachable) {
      buffers.unreachable[buffers.unreachable_count++] = {error.to, std::span(bytes).first(error.repeated)};
    }
    if (++errors_read_ < kMostErrors) continue;
    report_errors(handle_, v6_, false);  // whoever has so much to say would be heard instead of peers
    muted_ = true;
    errors_wait_ = false;
    counters_.icmp_muted.add(1);
    break;
  }
}

/// Stops the queueing of errors until listen_again(), so that the errno of a call is about this call. An unconnected
/// UDP socket without IP_RECVERR gets no error from ICMP; what came before is read here.
void UdpSocket::stop_listening() {
  if (!muted_) report_errors(handle_, v6_, false);
  int pending = 0;
  socklen_t length = sizeof pending;
  (void)::getsockopt(handle_, SOL_SOCKET, SO_ERROR, &pending, &length);
}

void UdpSocket::listen_again() {
  if (!muted_) report_errors(handle_, v6_, true);
}

bool UdpSocket::more() const { return buffers_->in_used == kReceiveBatch; }

std::span<const message::Datagram> UdpSocket::receive(Nanos now) {
  Buffers& buffers = *buffers_;
  now_ = now;
  if (segments_ != aggregates_ && now >= segments_again_) [[unlikely]]
    segments_ = true;
  timespec real{};
  (void)::clock_gettime(CLOCK_REALTIME, &real);
  for (std::size_t i = 0; i < buffers.in_used; ++i) {
    buffers.in_messages[i].msg_hdr.msg_namelen = sizeof(AnyAddress);
    buffers.in_messages[i].msg_hdr.msg_controllen = kReceiveControl;
  }
  if (now >= period_end_) [[unlikely]] {
    period_end_ = {now.value + kErrorPeriod};
    errors_read_ = 0;
    if (std::exchange(muted_, false)) report_errors(handle_, v6_, true);
  }
  if (errors_wait_) [[unlikely]]
    read_errors();
  const auto fetch = [&] {
    return ::recvmmsg(handle_, buffers.in_messages.data(), kReceiveBatch, MSG_DONTWAIT, nullptr);
  };
  int count = fetch();
  if (count < 0 && errno != EAGAIN && errno != EINTR) [[unlikely]] {  // a datagram sent earlier met it on its way
    read_errors();
    count = fetch();
    if (count < 0 && errno != EAGAIN && errno != EINTR) errors_wait_ = true;
  }
  unreachable_ = {buffers.unreachable.data(), std::exchange(buffers.unreachable_count, 0)};
  buffers.in_used = count > 0 ? static_cast<std::size_t>(count) : 0;
  std::size_t made = 0;
  for (std::size_t i = 0; i < buffers.in_used; ++i) {
    mmsghdr& message = buffers.in_messages[i];
    const Notes notes = read_control(message.msg_hdr);
    if (notes.overflow != lost_before_) {
      counters_.overflow.add(notes.overflow - lost_before_);
      lost_before_ = notes.overflow;
    }
    if ((message.msg_hdr.msg_flags & MSG_TRUNC) != 0) {
      counters_.truncated.add(1);
      continue;
    }
    message::Datagram datagram;
    datagram.from = peer_of(buffers.in[i].from);
    datagram.from.local = buffers.number_of(notes.own);
    datagram.ecn = notes.ecn;
    if (notes.arrived.tv_sec != 0) datagram.arrived = {now.value - (nanoseconds(real) - nanoseconds(notes.arrived))};
    auto* data = static_cast<std::uint8_t*>(buffers.in[i].piece.iov_base);
    std::uint32_t left = message.msg_len;
    const std::uint32_t segment = notes.segment == 0 ? left : notes.segment;
    do {
      datagram.head = data;
      datagram.head_length = std::min(segment, left);
      data += datagram.head_length;
      left -= datagram.head_length;
      buffers.datagrams[made++] = datagram;
    } while (left != 0 && made < buffers.datagrams.size());
  }
  counters_.received.add(made);
  return {buffers.datagrams.data(), made};
}

std::span<message::Outgoing> UdpSocket::room() {
  if (at_ != end_) flush();
  if (at_ != end_) return {};
  return buffers_->outgoing;
}

void UdpSocket::send(std::size_t count, Nanos now) {
  now_ = now;
  at_ = 0;
  end_ = count;
  flush();
}

/// Makes messages of the datagrams from `from` on, one of each run of equal lengths to one peer, or of the first by
/// itself. Returns how many.
std::size_t UdpSocket::assemble(std::size_t from, bool first_alone) {
  Buffers& buffers = *buffers_;
  std::size_t messages = 0;
  std::size_t pieces = 0;
  while (from < end_) {
    const message::Outgoing& first = buffers.outgoing[from];
    Buffers::Out& out = buffers.out[messages];
    msghdr& header = buffers.out_messages[messages].msg_hdr;
    header = {};
    header.msg_iov = &buffers.pieces[pieces];
    header.msg_namelen = address_of(first.to, v6_, out.to);
    header.msg_name = &out.to;
    header.msg_control = out.control.data();
    const std::uint32_t segment = first.length();
    std::uint32_t total = 0;
    std::uint32_t last = segment;
    out.datagrams = 0;
    for (std::size_t i = from; i < end_; ++i) {
      const message::Outgoing& next = buffers.outgoing[i];
      const bool joins =
          i == from || (segments_ && !(first_alone && messages == 0) && last == segment && segment != 0 &&
                        next.length() <= segment && next.length() != 0 && total + next.length() <= kMaxAggregate &&
                        out.datagrams < kMaxUdpSegments && next.to == first.to && next.to.local == first.to.local &&
                        next.ecn_capable == first.ecn_capable && !next.payload_device);
      if (!joins) break;
      buffers.pieces[pieces++] = {next.head, next.head_length};
      if (next.payload_length != 0) {
        buffers.pieces[pieces++] = {const_cast<std::uint8_t*>(next.payload), next.payload_length};
      }
      last = next.length();
      total += last;
      ++out.datagrams;
      if (first.payload_device) break;
    }
    header.msg_iovlen = static_cast<std::size_t>(&buffers.pieces[0] + pieces - header.msg_iov);
    if (first.ecn_capable) {
      if (is_mapped(first.to)) {
        add_control<int>(header, IPPROTO_IP, IP_TOS, kEcnCapable);
      } else {
        add_control<int>(header, IPPROTO_IPV6, IPV6_TCLASS, kEcnCapable);
      }
    }
    if (first.to.local != 0) {
      const OwnAddress& own = buffers.own[first.to.local - 1U];
      if (v6_) {
        add_control<in6_pktinfo>(header, IPPROTO_IPV6, IPV6_PKTINFO, {own.ip, own.interface});
      } else {
        in_pktinfo info{};
        std::memcpy(&info.ipi_spec_dst, own.ip.s6_addr + kMappedPrefix.size(), sizeof info.ipi_spec_dst);
        add_control<in_pktinfo>(header, IPPROTO_IP, IP_PKTINFO, info);
      }
    }
    if (out.datagrams > 1) {
      add_control<std::uint16_t>(header, IPPROTO_UDP, UDP_SEGMENT, static_cast<std::uint16_t>(segment));
    }
    if (header.msg_controllen == 0) header.msg_control = nullptr;
    from += out.datagrams;
    ++messages;
  }
  return messages;
}

/// The next `datagrams` are done with.
void UdpSocket::finish(std::size_t datagrams, bool sent) {
  Buffers& buffers = *buffers_;
  for (std::size_t i = at_; i < at_ + datagrams; ++i) {
    const message::Outgoing& outgoing = buffers.outgoing[i];
    if (outgoing.token != 0) buffers.tokens[buffers.done++] = outgoing.token;
  }
  at_ += datagrams;
  (sent ? counters_.sent : counters_.refused).add(datagrams);
}

/// Sends what is in [at_, end_), until the kernel takes no more.
void UdpSocket::flush() {
  const bool listened = send_waiting();
  if (!listened) listen_again();
}

/// Returns false if stop_listening() was called.
bool UdpSocket::send_waiting() {
  Buffers& buffers = *buffers_;
  std::size_t messages = assemble(at_, false);
  std::size_t next = 0;
  int alone = 0;          // errno of an aggregate, of which the next message is the first datagram
  bool once_more = true;  // the next error may be about a datagram sent earlier
  bool listening = true;  // until an error came back; from then on errors are about the message itself
  const auto again = [&](int error) {
    alone = error;
    messages = assemble(at_, error != 0);
    next = 0;
  };
  while (next < messages) {
    const Buffers::Out& out = buffers.out[next];
    const msghdr& header = buffers.out_messages[next].msg_hdr;
    if (header.msg_namelen == 0 || buffers.outgoing[at_].payload_device) {  // other IP version; unreachable payload
      finish(out.datagrams, false);
      ++next;
      continue;
    }
    std::size_t good = next;
    for (std::size_t i = at_; good < (alone != 0 ? next + 1 : messages); i += buffers.out[good].datagrams, ++good) {
      if (buffers.out_messages[good].msg_hdr.msg_namelen == 0 || buffers.outgoing[i].payload_device) break;
    }
    const int count =
        ::sendmmsg(handle_, &buffers.out_messages[next], static_cast<unsigned>(good - next), MSG_DONTWAIT);
    if (count > 0) {
      std::size_t datagrams = 0;
      for (int i = 0; i < count; ++i) datagrams += buffers.out[next++].datagrams;
      finish(datagrams, true);
      once_more = true;
      if (next < good) errors_wait_ = true;   // what refused the rest may have been an error that waited
      if (alone == EIO || alone == EINVAL) {  // a device below cannot aggregate, such as one without checksums
        segments_ = false;
        segments_again_ = {now_.value + kSegmentsAgain};
      }
      if (alone != 0) again(0);
      continue;
    }
    if (errno == EINTR) continue;
    const int error = errno;
    if (error == EAGAIN) return listening;
    // ENOBUFS: a queue before the device has dropped it, which the kernel tells who wants to hear of errors. It is lost
    // as anywhere on its way. Other errors may be about a datagram sent earlier, and anybody can forge the ICMP message
    // behind them: the message is refused only for an error that it meets while no others are reported.
    if (error != ENOBUFS && listening) {
      read_errors();
      if (std::exchange(once_more, false)) continue;
      stop_listening();
      listening = false;
      continue;
    }
    if (out.datagrams > 1 && (error == EIO || error == EINVAL || error == EMSGSIZE || error == EOPNOTSUPP)) {
      again(error);
      continue;
    }
    finish(out.datagrams, false);
    ++next;
    once_more = true;
    if (alone != 0) again(0);  // it is longer than the device takes
  }
  return listening;
}

std::span<const std::uint64_t> UdpSocket::completed() {
  const std::size_t done = std::exchange(buffers_->done, 0);
  return {buffers_->tokens.data(), done};
}

void UdpSocket::wait(Nanos now, Nanos until) {
  until = rest_until(now, until);
  if (until <= now) return;
  const std::int64_t nanos = std::min(until.value - now.value, wake_ < 0 ? kLongestWait : kLongestSleep);
  const timespec timeout{nanos / kSecond, nanos % kSecond};
  std::array<pollfd, 2> watched{{{handle_, static_cast<short>(blocked() ? POLLIN | POLLOUT : POLLIN), 0},  //
                                 {wake_, POLLIN, 0}}};
  (void)::ppoll(watched.data(), watched.size(), &timeout, nullptr);  // of a negative descriptor nothing is asked
  if ((watched[0].revents & POLLERR) != 0) errors_wait_ = true;
}

}  // namespace warpline::transport
