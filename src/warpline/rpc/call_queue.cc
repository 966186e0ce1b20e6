// SPDX-License-Identifier: Apache-2.0
#include "warpline/rpc/call_queue.h"

#include <fmt/format.h>

#include <cstring>

#include "warpline/base/units.h"

namespace warpline::rpc {
namespace {

constexpr std::uint64_t kOneChange = 1ULL << 32;
/// Its call and the call's cancelling. More only if a cancelling came late, for a call that had ended.
constexpr std::uint32_t kEntriesAPlace = 2;

std::uint32_t index_of(std::uint64_t head) { return static_cast<std::uint32_t>(head); }

}  // namespace

Result<void> check_calls(std::string_view what, std::uint32_t count) {
  if (count != 0 && count <= kMaxCalls) return {};
  return usage_error(fmt::format("{} is {}", what, count), "it counts what is there at the same time",
                     fmt::format("use 1 to {}", kMaxCalls));
}

CallQueue::CallQueue(std::uint32_t calls, transport::WakeUp& wake)
    : wake_(wake), places_(calls), free_(0), ring_(kEntriesAPlace * calls) {
  for (std::uint32_t i = 0; i < calls; ++i) {
    places_[i].generation.store(0, std::memory_order_relaxed);
    places_[i].next_free.store(i + 1 < calls ? i + 1 : kNobody, std::memory_order_relaxed);
  }
}

std::uint32_t CallQueue::take() {
  if (closed_.load(std::memory_order_relaxed)) return kNobody;
  std::uint64_t head = free_.load(std::memory_order_acquire);
  while (index_of(head) != kNobody) {
    const std::uint32_t next = places_[index_of(head)].next_free.load(std::memory_order_relaxed);
    const std::uint64_t changed = (head & ~std::uint64_t{kNobody}) + kOneChange + next;
    if (free_.compare_exchange_weak(head, changed, std::memory_order_acquire)) break;
  }
  return index_of(head);
}

void CallQueue::free(std::uint32_t index) {
  Place& place = places_[index];
  place.generation.store((place.generation.load(std::memory_order_relaxed) | 1) + 1, std::memory_order_release);
  std::uint64_t head = free_.load(std::memory_order_relaxed);
  std::uint64_t changed = 0;
  do {
    place.next_free.store(index_of(head), std::memory_order_relaxed);
    changed = (head & ~std::uint64_t{kNobody}) + kOneChange + index;
  } while (!free_.compare_exchange_weak(head, changed, std::memory_order_release, std::memory_order_relaxed));
}

bool CallQueue::push(const Entry& entry) {
  const bool pushed = ring_.push(entry);
  wake_.wake();
  return pushed;
}

SubmittedCall CallQueue::submit(const Call& call, const CallDone& done, Nanos now) {
  if (call.message.length > message::kMaxMessageBytes || call.metadata.size() > message::kMaxMetadataBytes) {
    return {message::CallStatus::too_long, {}};
  }
  if (call.response_in_endpoint && call.response.data != nullptr) return {message::CallStatus::not_allowed, {}};
  const std::uint32_t index = take();
  if (index == kNobody) return {message::CallStatus::no_memory, {}};
  Place& place = places_[index];
  place.call = call;
  place.done = done;
  place.submitted = now;
  place.deadline = time_sum(now, call.patience);
  if (call.message.length <= message::kInlineBytes && !call.message.device) {
    if (call.message.length != 0) std::memcpy(place.copy.data(), call.message.data, call.message.length);
    place.call.message.data = place.copy.data();
  }
  const std::uint32_t generation = place.generation.load(std::memory_order_relaxed) >> 1;
  if (!push({index, generation, Order::submit})) {
    free(index);
    return {message::CallStatus::no_memory, {}};
  }
  return {message::CallStatus::ok, {index, generation}};
}

bool CallQueue::cancel(CallId id) {
  if (id.index >= places_.size()) return false;
  std::atomic<std::uint32_t>& generation = places_[id.index].generation;
  std::uint32_t expected = id.generation << 1;
  if (!generation.compare_exchange_strong(expected, expected | 1)) return false;
  if (push({id.index, id.generation, Order::cancel})) return true;
  (void)generation.compare_exchange_strong(++expected, id.generation << 1);
  return false;
}

bool CallQueue::post(void (*task)(void* context), void* context) {
  const std::uint32_t index = take();
  if (index == kNobody) return false;
  places_[index].task = task;
  places_[index].task_context = context;
  if (push({index, 0, Order::run})) return true;
  free(index);
  return false;
}

CallQueue::Order CallQueue::next(std::uint32_t& index) {
  for (Entry entry; ring_.pop(entry);) {
    index = entry.index;
    const std::uint32_t generation = places_[index].generation.load(std::memory_order_relaxed) >> 1;
    if (entry.order != Order::cancel || generation == entry.generation) return entry.order;
  }
  return Order::nothing;
}

}  // namespace warpline::rpc
