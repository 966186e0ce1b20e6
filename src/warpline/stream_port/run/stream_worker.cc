// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream_port/run/stream_worker.h"

#include "warpline/base/give_way.h"

namespace warpline::stream_port {
namespace {

constexpr std::int64_t kSettling = 300'000'000;   ///< ns that the last bytes have to be settled
constexpr std::int64_t kFarewells = 100'000'000;  ///< ns that the last replies have, and their answers
constexpr std::uint32_t kAborts = 64;             ///< at a time: their resets find place in the receiver's queue

}  // namespace

void StreamWorker::run() {
  Turns turns(gives_way_);
  for (Nanos now = clock_.now(); !stop_.load(std::memory_order_relaxed) && !application_.failed() && !failed(now);
       now = clock_.now()) {
    turns.end(turn(now));
  }
  wind_up();
  done_.store(true, std::memory_order_release);
}

bool StreamWorker::turn(Nanos now) {
  bool worked = queue_.receive(now);
  note_bytes(now);
  worked = application_.turn(queue_.receiver(), now) || worked;
  return queue_.send(now) || worked;
}

/// A lane is looked at now and then: what fails there fails for good.
bool StreamWorker::failed(Nanos now) {
  constexpr std::int64_t kBetweenLooks = 5'000'000;
  if (now.value - looked_.value < kBetweenLooks) return false;
  looked_ = now;
  failure_ = queue_.failure(now);
  return failure_.has_value();
}

void StreamWorker::note_bytes(Nanos now) {
  if (const std::uint64_t bytes = queue_.receiver().counters().bytes.get(); bytes != bytes_) {
    const auto time = static_cast<std::uint64_t>(now.value);
    if (bytes_ == 0) {
      first_byte_.add(time);
      last_byte_.add(time);
    }
    last_byte_.add(time - last_byte_.get());
    bytes_ = bytes;
  }
}

/// Nothing is received until all that had come is settled; then the answers to the last replies alone.
void StreamWorker::wind_up() {
  stream::StreamReceiver& receiver = queue_.receiver();
  const Nanos begin = clock_.now();
  Nanos now = begin;
  application_.finish();
  do {
    const bool landed = queue_.settle(now) || failure_.has_value();
    note_bytes(now);
    (void)application_.turn(receiver, now);
    (void)queue_.send(now);
    if ((landed && application_.settled()) || application_.failed()) break;
    idle(true);
    now = clock_.now();
  } while (now.value - begin.value < kSettling);
  const bool settled = application_.settled() && !application_.failed();
  if (!settled) application_.abandon();
  const Nanos settled_at = now;
  while (application_.abort_some(receiver, kAborts, now) != 0) {
    while (now.value - settled_at.value < kFarewells && queue_.send(now)) now = clock_.now();
  }
  // Our FINs are acknowledged; what the writer may still read is not overwritten.
  while (settled && receiver.connections() != 0 && now.value - settled_at.value < kFarewells) {
    (void)queue_.receive(now);
    (void)queue_.send(now);
    idle(gives_way_);
    now = clock_.now();
  }
  while (!failure_ && !queue_.settle(now) && now.value - settled_at.value < 2 * kFarewells) {
    idle(gives_way_);
    now = clock_.now();
  }
}

}  // namespace warpline::stream_port
