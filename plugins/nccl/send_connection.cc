// SPDX-License-Identifier: Apache-2.0
#include "nccl/send_connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "nccl/log.h"
#include "warpline/base/spsc_ring.h"

namespace warpline::nccl {
namespace {

constexpr std::uint64_t kNoRequest = ~std::uint64_t{0};  ///< as a message's context: it is of none
constexpr std::uint32_t kUrgentBytes = 16 << 10;         ///< transfers up to this go before others

/// Those pieces of a transfer that go by one path.
struct Share {
  const std::uint8_t* data = nullptr;
  std::uint32_t bytes = 0;   ///< of the whole transfer
  std::uint32_t stride = 0;  ///< of its pieces
  std::uint32_t pieces = 0;  ///< in all
  std::uint32_t next = 0;    ///< the first of these
  std::uint32_t step = 1;    ///< from each of these to the next
  std::uint32_t request = 0;
  std::uint32_t slot = 0;
  std::uint32_t member = 0;
  std::optional<std::uint16_t> early{};  ///< goes early, whole, under this code
};

}  // namespace

/// One session of a sender.
class SendPath final : public Path {
 public:
  SendPath(Lane& on, SendConnection& of) : Path(on), connection_(of), shares_(SendConnection::kRequests) {}

  /// By NCCL's thread, as load().
  void begin(const Share& share, std::uint32_t bytes) {
    load_.fetch_add(bytes, std::memory_order_relaxed);
    (void)shares_.push(share);  // has room for one of each request
    lane.ring(*this);
  }
  /// Bytes that the receiver does not have.
  [[nodiscard]] std::uint64_t load() const { return load_.load(std::memory_order_relaxed); }

  void work(message::Endpoint&, Nanos now) override {
    while (share_.next < share_.pieces || shares_.pop(share_)) {
      while (share_.next < share_.pieces) {
        if (!send_piece(now)) return;
        share_.next += share_.step;
      }
    }
  }

  void take(message::Endpoint&, const message::MessageEvent& event, Nanos) override {
    const std::span<const std::uint8_t> bytes(event.data, event.length);
    if (event.code == static_cast<std::uint16_t>(Code::welcome)) {
      const auto welcome = read_welcome(bytes);
      if (!welcome) return connection_.fail(message::LossReason::wrong_version);
      if (std::exchange(welcome_, true)) return;
      connection_.early_bytes_.store(welcome->early_bytes, std::memory_order_relaxed);
      connection_.join();
    } else if (event.code == static_cast<std::uint16_t>(Code::posted)) {
      const auto posted = read_posted(bytes);
      if (!posted) return connection_.fail(message::LossReason::wrong_version);
      connection_.take_posted(*posted);
    }
  }

  void sent(const message::MessageEvent& event) override {
    if (event.context == kNoRequest) return;
    if (event.status != message::MessageStatus::ok) {
      if (event.status != message::MessageStatus::peer_lost) connection_.fail(message::LossReason::stalled);
      return;
    }
    load_.fetch_sub(event.length, std::memory_order_relaxed);
    connection_.complete_piece(static_cast<std::uint32_t>(event.context));
  }

  void lost(message::LossReason reason) override { connection_.fail(reason); }

  message::MutableBuffer place(std::uint16_t, std::uint32_t) override { return {}; }

 private:
  bool send_piece(Nanos now) {
    const std::uint32_t from = share_.next * share_.stride;
    const bool last = share_.next + 1 == share_.pieces;
    const message::ConstBuffer bytes{share_.data + from, last ? share_.bytes - from : share_.stride};
    message::SendOptions options;
    options.context = share_.request;
    options.code = share_.early.value_or(code_of({share_.slot, share_.member, share_.next, last}));
    if (share_.bytes <= kUrgentBytes) options.priority = message::Priority::high;
    return lane.send(*this, bytes, options, now);
  }

  SendConnection& connection_;
  SpscRing<Share> shares_;
  Share share_;  ///< the one that is being sent
  bool welcome_ = false;
  alignas(64) std::atomic<std::uint64_t> load_{0};
};

SendConnection::SendConnection(std::string peer, std::vector<std::shared_ptr<void>> keeps, std::span<Lane* const> lanes,
                               std::uint32_t piece_bytes, std::size_t home)
    : Connection(std::move(peer), std::move(keeps), home), piece_bytes_(piece_bytes), requests_(kRequests) {
  for (Lane* const lane : lanes) paths_.push_back(std::make_unique<SendPath>(*lane, *this));
  for (Sending& request : requests_) request.connection = this;
}

SendConnection::~SendConnection() = default;

void SendConnection::take_posted(const Posted& posted) {
  // Groups come in the order of their sequence but for losses, and no more than NCCL has requests for. For the last
  // ones that were served transfers went early.
  const std::uint64_t served = served_.load(std::memory_order_acquire);
  const auto ahead = static_cast<std::int32_t>(posted.sequence - static_cast<std::uint32_t>(served));
  const std::uint64_t number = served + static_cast<std::uint64_t>(std::int64_t{ahead});
  Group& group = groups_[number % kMaxRequests];
  const bool went_early = ahead < 0;
  const bool is_expected = ahead >= -static_cast<std::int32_t>(kMaxEarly) && ahead < kMaxRequests &&
                           group.number.load(std::memory_order_relaxed) != number + 1;
  const bool suits =
      !went_early || (posted.count == 1 && posted.tags[0] == group.early_tag && posted.bytes[0] >= group.early_bytes);
  if (!is_expected || !suits) {
    fail(message::LossReason::stalled);
    return;
  }
  group.posted = posted;
  group.number.store(number + 1, std::memory_order_release);
}

/// The receiver keeps the last kMaxEarly whose groups it has not told of.
bool SendConnection::may_go_early(std::uint64_t served, std::size_t bytes) const {
  const std::uint32_t most = early_bytes_.load(std::memory_order_relaxed);
  if (most == 0 || bytes > most) return false;
  if (served < kMaxEarly) return true;
  const std::uint64_t before = served - kMaxEarly;
  return groups_[before % kMaxRequests].number.load(std::memory_order_acquire) > before;
}

SendConnection::Sending* SendConnection::take_request() {
  std::uint32_t index = next_free_;
  while (requests_[index].used) {
    index = (index + 1) % kRequests;
    if (index == next_free_) return nullptr;
  }
  next_free_ = (index + 1) % kRequests;
  requests_[index].used = true;
  return &requests_[index];
}

void SendConnection::complete_piece(std::uint32_t request) {
  if (request < kRequests) requests_[request].left.fetch_sub(1, std::memory_order_acq_rel);
}

std::size_t SendConnection::least_loaded() const {
  std::size_t best = 0;
  std::uint64_t least = ~std::uint64_t{0};
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    const std::size_t path = (home_ + i) % paths_.size();
    const std::uint64_t load = static_cast<const SendPath&>(*paths_[path]).load();
    if (load < least) {
      least = load;
      best = path;
    }
  }
  return best;
}

Status SendConnection::send(const void* data, std::size_t bytes, int tag, Request** request) {
  *request = nullptr;
  if (failed()) return failure();
  const std::uint64_t served = served_.load(std::memory_order_relaxed);
  Group& group = groups_[served % kMaxRequests];
  const bool is_told = group.number.load(std::memory_order_acquire) == served + 1;
  if (!is_told) return may_go_early(served, bytes) ? send_early(data, bytes, tag, request) : Status::success;
  const Posted& posted = group.posted;
  std::uint32_t member = 0;
  while (member < posted.count && ((members_served_ >> member & 1U) != 0 || posted.tags[member] != tag)) ++member;
  if (member == posted.count) return Status::success;
  if (bytes > posted.bytes[member]) {
    return report(Status::invalid_usage, usage_error(fmt::format("send of {} bytes with tag {}", bytes, tag),
                                                     fmt::format("the receive has room for {}", posted.bytes[member]),
                                                     "call the collective with the same sizes on all ranks"));
  }
  Sending* const taken = take_request();
  if (taken == nullptr) return Status::success;
  Sending& sending = *taken;

  const std::uint32_t stride = stride_of(posted.bytes[member], piece_bytes_);
  const auto length = static_cast<std::uint32_t>(bytes);
  const std::uint32_t pieces = std::max(1U, (length + stride - 1) / stride);
  sending.data = static_cast<const std::uint8_t*>(data);
  sending.bytes = length;
  sending.left.store(pieces, std::memory_order_release);
  Share share{static_cast<const std::uint8_t*>(data),
              length,
              stride,
              pieces,
              0,
              0,
              static_cast<std::uint32_t>(&sending - requests_.data()),
              static_cast<std::uint32_t>(served % kMaxRequests),
              member};
  share.step = std::min(pieces, static_cast<std::uint32_t>(paths_.size()));
  // Before any of it leaves: the receiver may post the next group as soon as it has all of this one.
  members_served_ |= 1U << member;
  if (members_served_ == (1U << posted.count) - 1) {
    members_served_ = 0;
    served_.store(served + 1, std::memory_order_release);
  }
  const std::size_t first = least_loaded();
  for (; share.next < share.step; ++share.next) {
    const std::uint32_t mine = (pieces - share.next + share.step - 1) / share.step;  // pieces
    const bool has_last = (pieces - 1) % share.step == share.next;
    const std::uint32_t own = mine * stride - (has_last ? pieces * stride - length : 0);
    static_cast<SendPath&>(*paths_[(first + share.next) % paths_.size()]).begin(share, own);
  }
  *request = &sending;
  return Status::success;
}

/// By the home path, which the group's notice comes by, too.
Status SendConnection::send_early(const void* data, std::size_t bytes, int tag, Request** request) {
  Sending* const sending = take_request();
  if (sending == nullptr) return Status::success;
  const auto length = static_cast<std::uint32_t>(bytes);
  sending->data = static_cast<const std::uint8_t*>(data);
  sending->bytes = length;
  sending->left.store(1, std::memory_order_release);
  const std::uint64_t served = served_.load(std::memory_order_relaxed);
  Group& group = groups_[served % kMaxRequests];
  group.early_bytes = length;
  group.early_tag = tag;
  served_.store(served + 1, std::memory_order_release);  // first: the notice may come at any time
  Share share{sending->data, length, std::max(1U, length), 1};
  share.request = static_cast<std::uint32_t>(sending - requests_.data());
  share.early = early_code_of(static_cast<std::uint32_t>(served));
  static_cast<SendPath&>(*paths_[home_]).begin(share, length);
  *request = sending;
  return Status::success;
}

bool SendConnection::uses(const std::uint8_t* from, const std::uint8_t* to) const {
  return std::any_of(requests_.begin(), requests_.end(), [&](const Sending& one) {
    return one.used && one.left.load(std::memory_order_acquire) != 0 && one.data < to && from < one.data + one.bytes;
  });
}

Status SendConnection::test(Request& request, int* done, int* sizes) {
  auto& sending = static_cast<Sending&>(request);
  *done = sending.left.load(std::memory_order_acquire) == 0 ? 1 : 0;
  if (*done == 0) return failed() ? failure() : Status::success;
  if (sizes != nullptr) *sizes = static_cast<int>(sending.bytes);
  sending.used = false;
  return Status::success;
}

}  // namespace warpline::nccl
