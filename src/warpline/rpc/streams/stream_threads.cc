// SPDX-License-Identifier: Apache-2.0
#include "warpline/rpc/streams/stream_threads.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "warpline/transport/wake_up.h"

namespace warpline::rpc {

Result<std::unique_ptr<CallStreamThreads>> CallStreamThreads::start(unsigned threads, Handler handler,
                                                                    transport::WakeUp& wake) {
  if (threads == 0) return usage_error("calls in pieces on no thread", "it is one at least", "change it");
  std::unique_ptr<CallStreamThreads> made(new CallStreamThreads(std::move(handler), wake));
  for (unsigned i = 0; i < threads; ++i) {
    Lane& lane = *made->lanes_.emplace_back(std::make_unique<Lane>());
    made->running_.fetch_add(1, std::memory_order_relaxed);
    try {
      lane.thread = std::thread([all = made.get(), &lane, i] { all->work(lane, i); });
    } catch (const std::system_error& error) {
      return environment_error(fmt::format("thread {} of {}", i + 1, threads), error.code().message(),
                               "raise `ulimit -u`, or use fewer threads");
    }
  }
  return made;
}

void CallStreamThreads::stop() {
  waiting_.clear();
  stop_.store(true, std::memory_order_seq_cst);
  for (const auto& lane : lanes_) {
    // Either this finds the thread idle, or the thread finds that it is to stop.
    std::uint32_t expected = idle;
    if (lane->state.compare_exchange_strong(expected, stopped, std::memory_order_seq_cst)) lane->state.notify_all();
  }
}

CallStreamThreads::~CallStreamThreads() {
  stop();
  for (const auto& lane : lanes_) {
    if (lane->thread.joinable()) lane->thread.join();
  }
}

void CallStreamThreads::work(Lane& lane, unsigned number) {
  while (!stop_.load(std::memory_order_seq_cst)) {
    lane.state.wait(idle, std::memory_order_acquire);
    if (lane.state.load(std::memory_order_acquire) == stopped) break;
    handler_(lane.stream, number);
    lane.stream.close();
    lane.state.store(idle, std::memory_order_seq_cst);
    wake_.wake();
  }
  lane.stream.close();  // one that was given and not begun
  running_.fetch_sub(1, std::memory_order_release);
  wake_.wake();
}

void CallStreamThreads::take(CallStream stream) {
  if (stop_.load(std::memory_order_relaxed)) return;  // which declines it
  waiting_.push_back(std::move(stream));
  advance();
}

void CallStreamThreads::advance() {
  if (waiting_.empty()) return;
  std::erase_if(waiting_, [](const CallStream& stream) { return stream.ended(); });
  for (const auto& lane : lanes_) {
    if (waiting_.empty()) return;
    if (lane->state.load(std::memory_order_acquire) != idle) continue;
    lane->stream = std::move(waiting_.front());
    waiting_.pop_front();
    lane->state.store(busy, std::memory_order_release);
    lane->state.notify_all();
  }
}

}  // namespace warpline::rpc
