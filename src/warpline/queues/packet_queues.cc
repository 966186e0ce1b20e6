// SPDX-License-Identifier: Apache-2.0
#include "warpline/queues/packet_queues.h"

#include <fmt/core.h>

#include <bit>
#include <new>

namespace warpline::queues {
namespace {

constexpr std::size_t kQueuePage = 4096;
constexpr std::uint32_t kMaxQueueSlots = 1U << 20;
/// Stop, posted, doorbell and completed words, each alone on its line: two of them the host writes, one the consumer.
constexpr std::size_t kQueueWords = 4;

std::size_t segments_in(std::uint32_t slots) { return std::size_t{slots} + kMaxSegments - 1; }

std::size_t queue_region_size(std::uint32_t slots) {
  const std::size_t size = kQueueWords * sizeof(RingWord) + segments_in(slots) * sizeof(Segment) +
                           std::size_t{slots} * (sizeof(std::uint64_t) + sizeof(TransmitDescriptor) + 1);
  return (size + kQueuePage - 1) / kQueuePage * kQueuePage;
}

}  // namespace

Result<std::unique_ptr<PacketQueues>> PacketQueues::create(const QueueShape& shape) {
  if (!std::has_single_bit(shape.slots) || shape.slots < kMaxSegments || shape.slots > kMaxQueueSlots) {
    return usage_error(fmt::format("packet queues of {} slots", shape.slots),
                       fmt::format("the number must be a power of two, from {} to {}", kMaxSegments, kMaxQueueSlots));
  }
  return std::unique_ptr<PacketQueues>(new PacketQueues(shape));
}

PacketQueues::PacketQueues(const QueueShape& shape)
    : slots_(shape.slots),
      region_size_(queue_region_size(shape.slots)),
      region_(new(std::align_val_t{kQueuePage}) std::byte[region_size_]()),
      entries_(std::make_unique<Entry[]>(shape.slots)),
      next_(shape.first_sequence),
      seen_freed_(shape.first_sequence),
      published_(shape.first_sequence),
      oldest_(shape.first_sequence),
      sent_(shape.first_sequence),
      freed_(shape.first_sequence) {
  auto* const words = std::launder(reinterpret_cast<RingWord*>(region_.get()));
  auto* const released = std::launder(reinterpret_cast<std::uint64_t*>(words + kQueueWords));
  auto* const descriptors = std::launder(reinterpret_cast<TransmitDescriptor*>(released + slots_));
  auto* const segments = std::launder(reinterpret_cast<Segment*>(descriptors + slots_));
  const std::uint32_t mask = slots_ - 1;
  view_.stop = words;
  auto* const marks = std::launder(reinterpret_cast<std::uint8_t*>(segments + segments_in(slots_)));
  view_.receive = {&words[1].value, segments, marks, released, mask};
  view_.transmit = {&words[2].value, &words[3].value, descriptors, mask};
  view_.first_sequence = shape.first_sequence;
  words[1].value = words[2].value = words[3].value = shape.first_sequence;
  for (std::uint32_t i = 0; i < slots_; ++i) {
    const std::uint64_t sequence = shape.first_sequence + i;
    released[sequence & mask] = pack_ring_word(sequence - slots_, 0);
  }
}

void PacketQueues::post(void* packet, std::span<const Segment> pieces, Verdict preset, std::uint8_t mark) {
  const std::uint64_t first = next_ & (slots_ - 1);
  const auto count = static_cast<std::uint16_t>(pieces.size());
  for (std::uint16_t i = 0; i < count; ++i) {
    const Segment piece{pieces[i].data, pieces[i].length, static_cast<std::uint16_t>(count - 1 - i), preset};
    view_.receive.segments[first + i] = piece;
    if (first + i >= slots_) [[unlikely]]
      view_.receive.segments[first + i - slots_] = piece;  // so that its slot says, too, that a frame goes on there
  }
  view_.receive.marks[first] = mark;
  entries_[first] = {packet, 0, count, preset == Verdict::forward};
  next_ += count;
}

void PacketQueues::publish(std::uint64_t stamp) {
  const std::uint64_t begin = published_.load(std::memory_order_relaxed);
  if (begin == next_) return;
  entry_of(begin).stamp = stamp;
  // First for the sender: the consumer may be done with a slot as soon as it sees it, and what it then names is in
  // hand.
  published_.store(next_, std::memory_order_release);
  store_release(view_.receive.posted, next_);
}

std::uint32_t PacketQueues::take_sent(void** packets, std::uint32_t most, std::uint32_t* lengths) {
  const std::uint64_t end = load_acquire(view_.transmit.doorbell);
  if (end == sent_) return 0;
  const std::uint64_t published = published_.load(std::memory_order_acquire);
  std::uint32_t count = 0;
  for (; sent_ != end && count < most; ++sent_) {
    const TransmitDescriptor descriptor = view_.transmit.at(sent_);
    const std::uint64_t sequence = descriptor.sequence(oldest_);
    Entry& entry = entry_of(sequence);
    // What a consumer names twice, or never had, is nothing to send.
    if (sequence - oldest_ >= published - oldest_ || entry.packet == nullptr) [[unlikely]] {
      ++unworked_;
      continue;
    }
    if (lengths != nullptr) lengths[count] = descriptor.length();
    packets[count++] = entry.packet;
    entry.packet = nullptr;
  }
  return count;
}

PacketQueues::Waiting PacketQueues::waiting() const {
  const std::uint64_t oldest = freed_.load(std::memory_order_acquire);
  if (oldest == published_.load(std::memory_order_acquire)) return {false, oldest};
  const std::uint64_t word = load_acquire(view_.receive.released + (oldest & view_.receive.slot_mask));
  return {!has_sequence(word, oldest), oldest};
}

void PacketQueues::FreeRegion::operator()(std::byte* region) const {
  operator delete[](region, std::align_val_t{kQueuePage});
}

}  // namespace warpline::queues
