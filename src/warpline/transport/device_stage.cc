// SPDX-License-Identifier: Apache-2.0
#include "warpline/transport/device_stage.h"

#include <algorithm>
#include <utility>

#include "warpline/base/give_way.h"

namespace warpline::transport {
namespace {

/// Pieces of a batch: batches are worked on side by side, so that a burst makes several.
constexpr std::size_t kBatch = 16;
/// More pieces than any transport's burst has; nothing is allocated later.
constexpr std::size_t kMostOfBursts = 8192;

}  // namespace

DeviceStage::DeviceStage(Transport& inner, PieceLane& lane) : inner_(inner), lane_(lane) {
  pieces_.reserve(kMostOfBursts);
  fetched_.reserve(kMostOfBursts);
  tokens_.reserve(kMostOfBursts);
  given_.reserve(kMostOfBursts);
}

/// Gives the lane what there is. True: all of it.
bool DeviceStage::push() {
  while (pushed_ < pieces_.size()) {
    const std::size_t count = std::min(kBatch, pieces_.size() - pushed_);
    if (!lane_.submit({pieces_.data() + pushed_, count})) return false;
    pushed_ += count;
    ++batches_;
  }
  pieces_.clear();
  pushed_ = 0;
  return true;
}

// What arrives.

void DeviceStage::place(void* self, std::uint8_t* to, const std::uint8_t* from, std::uint32_t length) {
  auto& stage = *static_cast<DeviceStage*>(self);
  stage.pieces_.push_back({to, from, length});
  stage.copies_.placed.add(1);
  stage.copies_.placed_bytes.add(length);
}

std::span<const message::Datagram> DeviceStage::receive(Nanos now) {
  release(now);
  // The next burst would take the place of the one that is still being read.
  held_up_ = !settled();
  unreachable_ = {};
  if (held_up_) return {};
  const std::span<const message::Datagram> datagrams = inner_.receive(now);
  unreachable_ = inner_.unreachable();
  return datagrams;
}

void DeviceStage::read() {
  inner_.read();
  if (pieces_.empty()) return;
  const std::size_t left = (pieces_.size() - pushed_ + kBatch - 1) / kBatch;
  read_until_ = batches_ + left;
  seen_settled_ = false;
  (void)push();
}

bool DeviceStage::settled() {
  seen_settled_ = lane_.landed() >= read_until_;
  if (seen_settled_) return inner_.settled();
  (void)push();
  return false;
}

// What is sent.

std::span<message::Outgoing> DeviceStage::room() {
  if (held_ != 0) return {};
  return room_ = inner_.room();
}

void DeviceStage::send(std::size_t count, Nanos now) {
  const std::size_t before = pieces_.size();
  for (message::Outgoing& outgoing : room_.first(count)) {
    const bool fits = outgoing.length() <= outgoing.head_capacity;
    if (outgoing.payload_length == 0 || !outgoing.payload_device || !fits) continue;
    pieces_.push_back({outgoing.head + outgoing.head_length, outgoing.payload, outgoing.payload_length});
    copies_.fetched.add(1);
    copies_.fetched_bytes.add(outgoing.payload_length);
    outgoing.head_length += std::exchange(outgoing.payload_length, 0);
    outgoing.payload = nullptr;
    outgoing.payload_device = false;
    if (outgoing.token != 0) fetched_.push_back(std::exchange(outgoing.token, 0));
  }
  if (pieces_.size() == before) {
    inner_.send(count, now);
    return;
  }
  held_ = count;
  const std::size_t left = (pieces_.size() - pushed_ + kBatch - 1) / kBatch;
  fetch_until_ = batches_ + left;
  (void)push();
}

/// Lets the burst go whose payload has come.
void DeviceStage::release(Nanos now) {
  if (held_ == 0) return;
  (void)push();
  if (lane_.landed() < fetch_until_) return;
  inner_.send(std::exchange(held_, 0), now);
  tokens_.insert(tokens_.end(), fetched_.begin(), fetched_.end());
  fetched_.clear();
  collect();
}

/// Collects the completed tokens of the inner transport, which has room for one burst's tokens.
void DeviceStage::collect() {
  const std::span<const std::uint64_t> others = inner_.completed();
  tokens_.insert(tokens_.end(), others.begin(), others.end());
}

std::span<const std::uint64_t> DeviceStage::completed() {
  collect();
  given_.clear();
  given_.swap(tokens_);
  return given_;
}

void DeviceStage::wait(Nanos now, Nanos until) {
  if (restless()) {
    give_way();
  } else {
    inner_.wait(now, until);
  }
}

}  // namespace warpline::transport
