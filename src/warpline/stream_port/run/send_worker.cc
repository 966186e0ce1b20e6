// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream_port/run/send_worker.h"

#include <algorithm>
#include <limits>

#include "warpline/base/give_way.h"

namespace warpline::stream_port {
namespace {

constexpr std::int64_t kResolving = 10'000'000'000;  ///< ns that the next hop has to answer
constexpr std::int64_t kStanding = 10'000'000'000;   ///< ns without progress, once all is to come to an end
constexpr std::int64_t kLastSegments = 200'000'000;  ///< ns in which peers' FINs are still acknowledged
constexpr std::int64_t kLastResets = 100'000'000;    ///< ns that resets have to leave
constexpr std::uint32_t kOpenings = 64;              ///< a turn
constexpr std::uint32_t kResets = 64;                ///< at a time: they find place in the sender's queue

}  // namespace

SendWorker::SendWorker(SendQueue& queue, SendSource& source, const SendPlan& plan, const transport::NanoClock& clock,
                       const std::atomic<bool>& stop, bool gives_way)
    : queue_(queue),
      source_(source),
      plan_(plan),
      room_(queue.payload() != nullptr ? queue.payload()->ring_bytes() : std::uint64_t{1} << 62),
      clock_(clock),
      stop_(stop),
      gives_way_(gives_way),
      flows_(plan.connections) {
  plan_.ahead = std::min(plan_.ahead, room_);
}

void SendWorker::run() {
  Turns turns(gives_way_);
  began_ = clock_.now();
  while (!stop_.load(std::memory_order_relaxed) && ended_ != plan_.connections) {
    const Nanos now = clock_.now();
    turns.end(turn(now));
    if (!queue_.next_hop() && (finished_ || now.value - began_.value > kResolving)) {
      unresolved_.store(true, std::memory_order_relaxed);
      break;
    }
    if (finished_ && now.value - progress_at_.value > kStanding) break;
    if (queue_.payload() != nullptr && queue_.payload()->failure()) break;
  }
  wind_up();
  done_.store(true, std::memory_order_release);
  queue_.retire();
  // The device may bring this queue what is for others.
  while (queue_.is_needed() && !stop_.load(std::memory_order_relaxed)) {
    const Nanos now = clock_.now();
    const bool worked = queue_.receive(now);
    turns.end(queue_.send(now) || worked);
  }
}

bool SendWorker::turn(Nanos now) {
  bool worked = queue_.receive(now);
  if (opened_ != plan_.connections && queue_.next_hop()) open_some(now);
  while (const auto event = queue_.sender().poll()) {
    handle(*event, now);
    worked = true;
  }
  if (!finished_ && finishing_.load(std::memory_order_relaxed)) end_all(now);
  return queue_.send(now) || worked;
}

/// What was offered is still sent; a connection that is not open yet has nothing.
void SendWorker::end_all(Nanos now) {
  finished_ = true;
  progress_at_ = now;
  for (Flow& flow : flows_) {
    if (!flow.known) continue;
    const auto view = queue_.sender().view(flow.id);
    if (view && view->state == stream::SendState::opening) {
      queue_.sender().abort(flow.id, now);
      flow.known = false;
      ++ended_;
    } else {
      queue_.sender().close(flow.id);
    }
  }
  ended_ += plan_.connections - opened_;  // those that were never begun
  opened_ = plan_.connections;
}

void SendWorker::open_some(Nanos now) {
  if (opened_ == 0) {
    first_.add(static_cast<std::uint64_t>(now.value));
    last_byte_.add(static_cast<std::uint64_t>(now.value));
  }
  for (std::uint32_t i = 0; i < kOpenings && opened_ != plan_.connections; ++i) {
    const auto id = queue_.sender().connect(plan_.peer, *queue_.next_hop(), now);
    if (!id) return;
    const std::uint16_t port = queue_.sender().view(*id)->local_port;
    source_.begin(*id, port);
    flows_[id->index] = {.id = *id, .port = port, .known = true};
    ++opened_;
  }
}

void SendWorker::handle(const stream::SendEvent& event, Nanos now) {
  Flow& flow = flows_[event.connection.index];
  if (const std::uint64_t bytes = queue_.sender().counters().acknowledged.get(); bytes != bytes_) {
    bytes_ = bytes;
    last_byte_.add(static_cast<std::uint64_t>(now.value) - last_byte_.get());
    progress_at_ = now;
  }
  if (event.state > stream::SendState::open) {
    flow.known = false;
    ++ended_;
  }
  if (event.state == stream::SendState::open || event.state == stream::SendState::finished) {
    feed(flow, event.acknowledged, now);
  }
}

/// Offers what comes next: a chunk when the one before is acknowledged, or as much as is to be ahead.
void SendWorker::feed(Flow& flow, std::uint64_t acknowledged, Nanos now) {
  const bool chunk_arrived = plan_.chunk != 0 && acknowledged == flow.chunk_end;
  if (chunk_arrived && flow.chunk_began != 0) {
    chunk_times_.record(static_cast<std::uint64_t>(now.value - flow.chunk_began));
    flow.chunk_began = 0;
  }
  if (!flow.known || flow.closed || finished_) return;
  const std::uint64_t end = plan_.bytes != 0 ? plan_.bytes : std::numeric_limits<std::uint64_t>::max();
  if (chunk_arrived && flow.chunk_end != end) {
    flow.chunk_end = std::min(flow.chunk_end + plan_.chunk, end);
    flow.chunk_began = now.value;
  }
  const std::uint64_t wanted = plan_.chunk != 0 ? flow.chunk_end : std::min(acknowledged + plan_.ahead, end);
  const std::uint64_t target = std::min(wanted, acknowledged + room_);
  // In pieces that are worth a call, but for the last one.
  const bool is_last = target == wanted && (plan_.chunk != 0 || target == end);
  if (target > flow.offered && (is_last || target - flow.offered >= std::min(plan_.ahead, room_) / 4)) {
    offer(flow, target - flow.offered);
  }
  // With chunks the FIN waits for the last one, too, so that its time is not that of the end.
  if (flow.offered == end && (plan_.chunk == 0 || acknowledged == end)) {
    queue_.sender().close(flow.id);
    flow.closed = true;
  }
}

void SendWorker::offer(Flow& flow, std::uint64_t bytes) {
  if (queue_.payload() != nullptr) queue_.payload()->make(flow.id, flow.port, flow.offered, bytes);
  queue_.sender().offer(flow.id, bytes);
  flow.offered += bytes;
}

/// The last segments of peers are answered for a moment; what is open is reset.
void SendWorker::wind_up() {
  const Nanos begin = clock_.now();
  Nanos now = begin;
  const bool in_order = ended_ == plan_.connections;
  while (in_order && queue_.sender().connections() != 0 && now.value - begin.value < kLastSegments) {
    if (!queue_.receive(now) && !queue_.send(now)) idle(gives_way_);
    (void)queue_.send(now);
    now = clock_.now();
  }
  const Nanos resetting = now;
  std::uint32_t aborted = 0;
  for (Flow& flow : flows_) {
    if (!flow.known) continue;
    flow.known = false;
    queue_.sender().abort(flow.id, now);
    if (++aborted % kResets != 0) continue;
    while (now.value - resetting.value < kLastResets && queue_.send(now)) now = clock_.now();
  }
  if (aborted == 0) return;
  do {
    (void)queue_.send(now);
    now = clock_.now();
  } while (now.value - resetting.value < kLastResets / 10);
}

}  // namespace warpline::stream_port
