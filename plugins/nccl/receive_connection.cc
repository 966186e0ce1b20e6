// SPDX-License-Identifier: Apache-2.0
#include "nccl/receive_connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "nccl/log.h"
#include "warpline/base/spsc_ring.h"

namespace warpline::nccl {
namespace {

/// Stands for a length that is not known: more than any receive has.
constexpr std::int64_t kUnknown = std::int64_t{1} << 40;

}  // namespace

/// One session of a receiver.
class ReceivePath final : public Path {
 public:
  ReceivePath(Lane& on, ReceiveConnection& of) : Path(on), connection_(of), posted_(kMaxRequests) {}

  /// Tells the sender of the group; by NCCL's thread.
  void post(std::uint32_t sequence) {
    (void)posted_.push(sequence);  // has room for all groups
    lane.ring(*this);
  }

  void work(message::Endpoint&, Nanos now) override {
    while (waits_ || posted_.pop(sequence_)) {
      waits_ = !tell(now);
      if (waits_) return;
      meet_early(sequence_);  // last: the group is NCCL's again when it has all
    }
  }

  [[nodiscard]] Welcome welcome() const override { return {.early_bytes = connection_.early_bytes_}; }

  void take(message::Endpoint&, const message::MessageEvent& event, Nanos) override {
    const PieceName name = name_of(event.code);
    if (is_early(name)) {
      take_early(name, event);
      return;
    }
    ReceiveConnection::Member* const member = connection_.member_of(name, event.length);
    if (member == nullptr) {
      connection_.fail(message::LossReason::stalled);
      return;
    }
    std::uint8_t* const to = member->data + std::size_t{name.piece} * member->stride;
    if (event.length != 0 && event.data != to) std::memcpy(to, event.data, event.length);  // too short for place()
    connection_.arrived(name, event.length);
  }

  void sent(const message::MessageEvent& event) override {
    const bool refused =
        event.status != message::MessageStatus::ok && event.status != message::MessageStatus::peer_lost;
    if (refused) connection_.fail(message::LossReason::stalled);
  }

  void lost(message::LossReason reason) override { connection_.fail(reason); }

  message::MutableBuffer place(std::uint16_t code, std::uint32_t length) override {
    const PieceName name = name_of(code);
    if (is_early(name)) return place_early(name, length);
    const ReceiveConnection::Member* const member = connection_.member_of(name, length);
    if (member == nullptr) return {};
    return {member->data + std::size_t{name.piece} * member->stride, length};
  }

 private:
  /// Such a transfer comes by the home path, which knows of the groups before `known_`.
  [[nodiscard]] bool is_early(const PieceName& name) const {
    return connection_.early_bytes_ != 0 && name.member == kEarlyMember;
  }
  /// Whether there is room for what comes for a group that is not known.
  [[nodiscard]] bool has_room(std::uint32_t sequence) const {
    return sequence - known_ < kMaxEarly && !early_[sequence % kMaxEarly].is_there;
  }
  [[nodiscard]] static PieceName only_piece(std::uint32_t sequence) {
    return {.slot = sequence % kMaxRequests, .member = 0, .piece = 0, .last = true};
  }

  /// The receive of a group that is known, or room until it is.
  message::MutableBuffer place_early(const PieceName& name, std::uint32_t length) {
    if (length > connection_.early_bytes_) return {};
    const std::uint32_t sequence = early_sequence_of(name, known_);
    if (has_room(sequence)) return {connection_.early_room(sequence), length};
    const ReceiveConnection::Member* const member = connection_.member_of(only_piece(sequence), length);
    return member == nullptr ? message::MutableBuffer{} : message::MutableBuffer{member->data, length};
  }

  void take_early(const PieceName& name, const message::MessageEvent& event) {
    const std::uint32_t sequence = early_sequence_of(name, known_);
    if (event.length > connection_.early_bytes_ || !has_room(sequence)) {
      finish_early(sequence, event.data, event.length);  // its group is known by now
      return;
    }
    std::uint8_t* const room = connection_.early_room(sequence);
    if (event.length != 0 && event.data != room) std::memcpy(room, event.data, event.length);
    early_[sequence % kMaxEarly] = {event.length, true};
  }

  /// A group is known from here on; what came for it before is its.
  void meet_early(std::uint32_t sequence) {
    known_ = sequence + 1;
    Early& early = early_[sequence % kMaxEarly];
    if (!std::exchange(early.is_there, false)) return;
    finish_early(sequence, connection_.early_room(sequence), early.bytes);
  }

  void finish_early(std::uint32_t sequence, const std::uint8_t* data, std::uint32_t length) {
    const PieceName name = only_piece(sequence);
    const ReceiveConnection::Member* const member = connection_.member_of(name, length);
    if (member == nullptr) {
      connection_.fail(message::LossReason::stalled);
      return;
    }
    if (length != 0 && data != member->data) std::memcpy(member->data, data, length);
    connection_.arrived(name, length);
  }

  bool tell(Nanos now) {
    const ReceiveConnection::Group& group = connection_.groups_[sequence_ % kMaxRequests];
    Posted posted{.sequence = sequence_, .count = group.count};
    for (std::uint32_t i = 0; i < group.count; ++i) {
      posted.bytes[i] = group.members[i].room;
      posted.tags[i] = group.members[i].tag;
    }
    std::array<std::uint8_t, kMaxPostedBytes> bytes;
    const auto length = static_cast<std::uint32_t>(write_posted(posted, bytes));
    message::SendOptions options;
    options.code = static_cast<std::uint16_t>(Code::posted);
    options.priority = message::Priority::high;
    return lane.send(*this, {bytes.data(), length}, options, now);
  }

  /// A transfer that came before its receive was posted.
  struct Early {
    std::uint32_t bytes = 0;
    bool is_there = false;
  };

  ReceiveConnection& connection_;
  SpscRing<std::uint32_t> posted_;
  std::array<Early, kMaxEarly> early_{};
  std::uint32_t known_ = 0;  ///< groups that posted_ has told of
  std::uint32_t sequence_ = 0;
  bool waits_ = false;  ///< sequence_ is still to be told
};

ReceiveConnection::ReceiveConnection(std::string peer, std::vector<std::shared_ptr<void>> keeps,
                                     std::span<Lane* const> lanes, std::uint32_t piece_bytes, std::size_t home,
                                     std::uint32_t early_bytes)
    : Connection(std::move(peer), std::move(keeps), home),
      piece_bytes_(piece_bytes),
      early_bytes_(early_bytes),
      early_(new std::uint8_t[std::size_t{kMaxEarly} * early_bytes]) {
  for (Lane* const lane : lanes) paths_.push_back(std::make_unique<ReceivePath>(*lane, *this));
  for (Group& group : groups_) group.connection = this;
}

ReceiveConnection::~ReceiveConnection() = default;

/// The receive that a piece belongs to; null: nothing like it was told to the sender.
ReceiveConnection::Member* ReceiveConnection::member_of(const PieceName& name, std::uint32_t length) {
  Group& group = groups_[name.slot];
  if (group.state.load(std::memory_order_acquire) != Group::posted || name.member >= group.count) return nullptr;
  Member& member = group.members[name.member];
  const std::uint64_t end = std::uint64_t{name.piece} * member.stride + length;
  const bool fits = end <= member.room && length <= member.stride && (name.last || length == member.stride);
  return fits && member.balance.load(std::memory_order_relaxed) > 0 ? &member : nullptr;
}

void ReceiveConnection::arrived(const PieceName& name, std::uint32_t length) {
  Group& group = groups_[name.slot];
  Member& member = group.members[name.member];
  std::int64_t less = length;
  if (name.last) {  // from now on the whole length is known
    member.bytes = name.piece * member.stride + length;
    less += kUnknown - member.bytes;
  }
  if (member.balance.fetch_sub(less, std::memory_order_acq_rel) != less) return;
  if (group.left.fetch_sub(1, std::memory_order_acq_rel) == 1)
    group.state.store(Group::done, std::memory_order_release);
}

template <typename Size>
Status ReceiveConnection::receive(int count, void* const* data, const Size* sizes, const int* tags, Request** request) {
  *request = nullptr;
  if (failed()) return failure();
  if (count < 1 || count > kMaxGroup) {
    return report(Status::internal_error, usage_error(fmt::format("{} receives as one", count),
                                                      fmt::format("there may be 1 to {}", kMaxGroup)));
  }
  Group& group = groups_[next_ % kMaxRequests];
  if (group.state.load(std::memory_order_relaxed) != Group::free) return Status::success;
  group.count = static_cast<std::uint32_t>(count);
  group.left.store(group.count, std::memory_order_relaxed);
  for (int i = 0; i < count; ++i) {
    Member& member = group.members[static_cast<std::size_t>(i)];
    member.data = static_cast<std::uint8_t*>(data[i]);
    member.room = static_cast<std::uint32_t>(std::min<std::uint64_t>(static_cast<std::uint64_t>(sizes[i]), kMaxBytes));
    member.tag = tags[i];
    member.stride = stride_of(member.room, piece_bytes_);
    member.bytes = 0;
    member.balance.store(kUnknown, std::memory_order_relaxed);
  }
  group.state.store(Group::posted, std::memory_order_release);
  static_cast<ReceivePath&>(*paths_[home_]).post(next_);
  ++next_;
  *request = &group;
  return Status::success;
}

template Status ReceiveConnection::receive(int, void* const*, const int*, const int*, Request**);
template Status ReceiveConnection::receive(int, void* const*, const std::size_t*, const int*, Request**);

bool ReceiveConnection::uses(const std::uint8_t* from, const std::uint8_t* to) const {
  return std::any_of(groups_.begin(), groups_.end(), [&](const Group& group) {
    if (group.state.load(std::memory_order_acquire) != Group::posted) return false;
    const auto members = std::span(group.members).first(group.count);
    return std::any_of(members.begin(), members.end(),
                       [&](const Member& one) { return one.data < to && from < one.data + one.room; });
  });
}

Status ReceiveConnection::test(Request& request, int* done, int* sizes) {
  auto& group = static_cast<Group&>(request);
  *done = group.state.load(std::memory_order_acquire) == Group::done ? 1 : 0;
  if (*done == 0) return failed() ? failure() : Status::success;
  for (std::uint32_t i = 0; sizes != nullptr && i < group.count; ++i)
    sizes[i] = static_cast<int>(group.members[i].bytes);
  group.state.store(Group::free, std::memory_order_relaxed);
  return Status::success;
}

}  // namespace warpline::nccl
