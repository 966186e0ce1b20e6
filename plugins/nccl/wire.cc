// SPDX-License-Identifier: Apache-2.0
#include "nccl/wire.h"

#include <algorithm>
#include <cstring>

#include "warpline/message/types.h"

namespace warpline::nccl {
namespace {

constexpr std::uint32_t kHandleMark = 0x57'4e'43'32;  ///< "WNC2"
constexpr std::uint32_t kJoinMark = 0x57'4e'4a'32;    ///< "WNJ2"
constexpr std::size_t kAttemptAt = kHandleBytes - sizeof(std::uint64_t);

/// Both ends of a connection run on machines of one kind, as NCCL asks: numbers are as they are in memory.
class Writer {
 public:
  explicit Writer(std::span<std::uint8_t> to) : to_(to) {}
  template <typename T>
  void put(const T& value) {
    std::memcpy(to_.data() + at_, &value, sizeof value);
    at_ += sizeof value;
  }
  [[nodiscard]] std::size_t at() const { return at_; }

 private:
  std::span<std::uint8_t> to_;
  std::size_t at_ = 0;
};

class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> from) : from_(from) {}
  template <typename T>
  T get() {
    T value{};
    std::memcpy(&value, from_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }

 private:
  std::span<const std::uint8_t> from_;
  std::size_t at_ = 0;
};

}  // namespace

void write_handle(const Handle& handle, std::span<std::uint8_t, kHandleBytes> to) {
  std::fill(to.begin(), to.end(), std::uint8_t{0});
  Writer writer(to);
  writer.put(kHandleMark);
  writer.put(handle.lanes);
  writer.put(handle.rails);
  writer.put(std::uint16_t{0});
  for (const IpAddress& address : handle.addresses) writer.put(message::peer_address(address, 0).ip);
  for (const std::uint16_t port : handle.ports) writer.put(port);
  writer.put(handle.listener);
  writer.put(handle.secret);
  static_assert(8 + kMaxRails * 16 + kMaxLanes * 2 + 8 + 16 <= kAttemptAt);
}

std::optional<Handle> read_handle(std::span<const std::uint8_t, kHandleBytes> from) {
  Reader reader(from);
  if (reader.get<std::uint32_t>() != kHandleMark) return std::nullopt;
  Handle handle;
  handle.lanes = reader.get<std::uint8_t>();
  handle.rails = reader.get<std::uint8_t>();
  if (reader.get<std::uint16_t>() != 0) return std::nullopt;
  for (IpAddress& address : handle.addresses) {
    message::PeerAddress peer;
    peer.ip = reader.get<decltype(peer.ip)>();
    address = message::ip_address(peer);
  }
  for (std::uint16_t& port : handle.ports) port = reader.get<std::uint16_t>();
  handle.listener = reader.get<std::uint64_t>();
  handle.secret = reader.get<ConnectionSecret>();
  const bool sane = handle.lanes >= 1 && handle.lanes <= kMaxLanes && handle.rails >= 1 && handle.rails <= kMaxRails;
  if (!sane ||
      std::any_of(handle.ports.begin(), handle.ports.begin() + handle.lanes, [](auto port) { return port == 0; }))
    return std::nullopt;
  return handle;
}

std::uint64_t attempt_of(std::span<const std::uint8_t, kHandleBytes> from) {
  std::uint64_t attempt;
  std::memcpy(&attempt, from.data() + kAttemptAt, sizeof attempt);
  return attempt;
}

void set_attempt(std::span<std::uint8_t, kHandleBytes> to, std::uint64_t attempt) {
  std::memcpy(to.data() + kAttemptAt, &attempt, sizeof attempt);
}

std::array<std::uint8_t, kJoinBytes> write_join(const Join& join) {
  std::array<std::uint8_t, kJoinBytes> bytes{};
  Writer writer(bytes);
  writer.put(kJoinMark);
  writer.put(join.piece_bytes);
  writer.put(join.listener);
  writer.put(join.secret);
  writer.put(join.connection);
  writer.put(join.path);
  writer.put(join.paths);
  writer.put(join.home);
  return bytes;
}

std::optional<Join> read_join(std::span<const std::uint8_t> from) {
  if (from.size() != kJoinBytes) return std::nullopt;
  Reader reader(from);
  if (reader.get<std::uint32_t>() != kJoinMark) return std::nullopt;
  Join join;
  join.piece_bytes = reader.get<std::uint32_t>();
  join.listener = reader.get<std::uint64_t>();
  join.secret = reader.get<ConnectionSecret>();
  join.connection = reader.get<ConnectionSecret>();
  join.path = reader.get<std::uint8_t>();
  join.paths = reader.get<std::uint8_t>();
  join.home = reader.get<std::uint8_t>();
  const bool sane = join.paths >= 1 && join.paths <= kMaxLanes && join.path < join.paths && join.home < join.paths &&
                    join.piece_bytes >= 4096 && join.piece_bytes <= kMaxPieceBytes;
  return sane ? std::optional(join) : std::nullopt;
}

std::array<std::uint8_t, kWelcomeBytes> write_welcome(const Welcome& welcome) {
  std::array<std::uint8_t, kWelcomeBytes> bytes{};
  Writer(bytes).put(welcome.early_bytes);
  return bytes;
}

std::optional<Welcome> read_welcome(std::span<const std::uint8_t> from) {
  if (from.size() != kWelcomeBytes) return std::nullopt;
  const Welcome welcome{.early_bytes = Reader(from).get<std::uint32_t>()};
  return welcome.early_bytes <= kMostEarlyBytes ? std::optional(welcome) : std::nullopt;
}

std::size_t write_posted(const Posted& posted, std::span<std::uint8_t, kMaxPostedBytes> to) {
  Writer writer(to);
  writer.put(posted.sequence);
  writer.put(posted.count);
  for (std::uint32_t i = 0; i < posted.count; ++i) {
    writer.put(posted.bytes[i]);
    writer.put(posted.tags[i]);
  }
  return writer.at();
}

std::optional<Posted> read_posted(std::span<const std::uint8_t> from) {
  if (from.size() < 8) return std::nullopt;
  Reader reader(from);
  Posted posted;
  posted.sequence = reader.get<std::uint32_t>();
  posted.count = reader.get<std::uint32_t>();
  if (posted.count == 0 || posted.count > kMaxGroup || from.size() != 8 + std::size_t{8} * posted.count)
    return std::nullopt;
  for (std::uint32_t i = 0; i < posted.count; ++i) {
    posted.bytes[i] = reader.get<std::uint32_t>();
    posted.tags[i] = reader.get<std::int32_t>();
    if (posted.bytes[i] > kMaxBytes) return std::nullopt;
  }
  return posted;
}

}  // namespace warpline::nccl
