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
    try {
      lane.thread = std::thread([all = made.get(), &lane, i] { all->work(lane, i); });
    } catch (const std::system_error& error) {
      return environment_error(fmt::format("thread {} of {}", i + 1, threads), error.code().message(),
                               "raise `ulimit -u`, or use fewer threads");
    }
  }
  return made;
}

CallStreamThreads::~CallStreamThreads() {
  waiting_.clear();
  for (const auto& lane : lanes_) {
    std::uint32_t expected = idle;
    // A busy one is asked again when it is done.
    while (!lane->state.compare_exchange_strong(expected, stopped, std::memory_order_acq_rel)) {
      lane->state.wait(busy, std::memory_order_acquire);
      expected = idle;
    }
    lane->state.notify_all();
    if (lane->thread.joinable()) lane->thread.join();
  }
}

void CallStreamThreads::work(Lane& lane, unsigned number) {
  while (true) {
    lane.state.wait(idle, std::memory_order_acquire);
    if (lane.state.load(std::memory_order_acquire) == stopped) return;
    handler_(lane.stream, number);
    lane.stream.close();
    lane.state.store(idle, std::memory_order_release);
    lane.state.notify_all();
    wake_.wake();
  }
}

void CallStreamThreads::take(CallStream stream) {
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
