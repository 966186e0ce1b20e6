// SPDX-License-Identifier: Apache-2.0
#include "warpline/rpc/handler_threads.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "warpline/message/endpoint.h"
#include "warpline/rpc/call_queue.h"
#include "warpline/transport/wake_up.h"

namespace warpline::rpc {
namespace {

/// Looks in vain before a thread sleeps: some 50 us on a processor of its own.
constexpr unsigned kPatience = 200;

}  // namespace

HandlerThreads::HandlerThreads(const HandlerThreadsSetup& setup, Handler handler)
    : setup_(setup),
      handler_(std::move(handler)),
      rooms_(std::size_t{setup.requests} * setup.response_bytes),
      jobs_(setup.requests) {
  for (std::uint32_t i = 0; i < setup.requests; ++i) {
    jobs_[i].request.room = std::span(rooms_).subspan(std::size_t{i} * setup.response_bytes, setup.response_bytes);
    jobs_[i].request.gone = &jobs_[i].withdrawn;
    free_.push_back(setup.requests - 1 - i);
  }
  waiting_.reserve(setup.requests);
}

Result<std::unique_ptr<HandlerThreads>> HandlerThreads::start(const HandlerThreadsSetup& setup, Handler handler) {
  if (setup.threads == 0) return usage_error("handlers on no thread", "there is at least one", "change it");
  WARPLINE_CHECK(check_calls("HandlerThreadsSetup::requests", setup.requests));
  std::unique_ptr<HandlerThreads> made(new HandlerThreads(setup, std::move(handler)));
  for (unsigned i = 0; i < setup.threads; ++i) {
    Lane& lane = *made->lanes_.emplace_back(std::make_unique<Lane>(setup.requests));
    made->running_.fetch_add(1, std::memory_order_relaxed);
    try {
      lane.thread = std::thread([threads = made.get(), &lane, i] { threads->work(lane, i); });
    } catch (const std::system_error& error) {
      return environment_error(fmt::format("thread {} of {}", i + 1, setup.threads), error.code().message(),
                               "raise `ulimit -u`, or use fewer threads");
    }
  }
  return made;
}

void HandlerThreads::stop() {
  stop_.store(true, std::memory_order_seq_cst);
  for (const auto& lane : lanes_) wake(*lane);
}

HandlerThreads::~HandlerThreads() {
  stop();
  for (const auto& lane : lanes_) {
    if (lane->thread.joinable()) lane->thread.join();
  }
}

/// The life of a thread.
void HandlerThreads::work(Lane& lane, unsigned number) {
  for (unsigned idle = 0; !stop_.load(std::memory_order_relaxed);) {
    std::uint32_t index = 0;
    if (lane.asked.pop(index)) {
      handler_(jobs_[index].request, number);
      (void)lane.done.push(index);
      if (setup_.wake != nullptr) setup_.wake->wake();
      idle = 0;
    } else if (++idle < kPatience) {
      std::this_thread::yield();
    } else {
      // Either this thread sees what was asked or stopped, or the other one sees that it sleeps.
      lane.sleeps.store(1, std::memory_order_seq_cst);
      std::atomic_thread_fence(std::memory_order_seq_cst);
      if (lane.asked.empty() && !stop_.load(std::memory_order_seq_cst)) lane.sleeps.wait(1);
      lane.sleeps.store(0, std::memory_order_relaxed);
      idle = 0;
    }
  }
  running_.fetch_sub(1, std::memory_order_release);
  if (setup_.wake != nullptr) setup_.wake->wake();
}

void HandlerThreads::wake(Lane& lane) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (lane.sleeps.load(std::memory_order_seq_cst) == 0) return;
  lane.sleeps.store(0, std::memory_order_seq_cst);
  lane.sleeps.notify_one();
}

void HandlerThreads::accept(const message::MessageEvent& event, Nanos now) {
  const std::uint32_t index = free_.back();
  free_.pop_back();
  const auto least = [](const auto& a, const auto& b) { return a->in_hand < b->in_hand; };
  const auto chosen =
      setup_.by_session
          ? event.session.index % lanes_.size()
          : static_cast<std::size_t>(std::min_element(lanes_.begin(), lanes_.end(), least) - lanes_.begin());
  Job& job = jobs_[index];
  job.id = event.id;
  job.thread = static_cast<unsigned>(chosen);
  job.began = now;
  HandledRequest& request = job.request;
  request.session = event.session;
  request.code = event.code;
  request.data = {event.data, event.length, event.device};
  request.metadata = event.metadata();
  request.deadline = event.deadline();
  job.withdrawn.store(false, std::memory_order_relaxed);  // the thread's from the push on
  request.answer = {};
  request.answer_code = 0;
  request.declined = false;
  if (setup_.observer != nullptr) setup_.observer->request_began({event.session, event.code, event.length});
  Lane& lane = *lanes_[chosen];
  ++lane.in_hand;
  ++in_hand_;
  (void)lane.asked.push(index);
  wake(lane);
}

void HandlerThreads::withdraw(const message::MessageEvent& event) {
  const auto job = std::ranges::find(jobs_, event.id, &Job::id);
  if (job != jobs_.end()) job->withdrawn.store(true, std::memory_order_relaxed);
}

bool HandlerThreads::sent(const message::MessageEvent& event) {
  if (event.context >= jobs_.size()) return false;
  Job& job = jobs_[event.context];
  if (!job.leaving || job.id != event.id) return false;
  job.leaving = false;
  free_.push_back(static_cast<std::uint32_t>(event.context));
  return true;
}

bool HandlerThreads::answer(message::Endpoint& endpoint, std::uint32_t index, Nanos now) {
  Job& job = jobs_[index];
  const HandledRequest& request = job.request;
  message::CallStatus status = message::CallStatus::not_allowed;
  if (!request.declined) {
    status = endpoint.respond(job.id, request.answer, {.context = index, .code = request.answer_code}, now);
    if (status == message::CallStatus::no_memory || status == message::CallStatus::no_slot) return false;
  }
  // Withdrawn meanwhile, it has been given back; what cannot be sent is declined.
  if (status != message::CallStatus::ok && status != message::CallStatus::unknown_message)
    (void)endpoint.release(job.id, now);
  if (setup_.observer != nullptr) {
    setup_.observer->request_ended(
        {request.session, request.code, request.data.length},
        observed_answer(status, request.answer_code, request.answer.length, {now.value - job.began.value}));
  }
  job.leaving =
      status == message::CallStatus::ok && (request.answer.length > message::kInlineBytes || request.answer.device);
  if (!job.leaving) free_.push_back(index);
  --in_hand_;
  return true;
}

void HandlerThreads::respond(message::Endpoint& endpoint, Nanos now) {
  std::erase_if(waiting_, [&](std::uint32_t index) { return answer(endpoint, index, now); });
  for (const auto& lane : lanes_) {
    for (std::uint32_t index = 0; lane->done.pop(index);) {
      --lane->in_hand;
      if (!answer(endpoint, index, now)) waiting_.push_back(index);
    }
  }
}

std::size_t HandlerThreads::poll(message::Endpoint& endpoint, std::span<message::MessageEvent> others, Nanos now) {
  respond(endpoint, now);
  std::size_t kept = 0;
  // An answer that has left makes room for a request that waits. Once there is something for the caller it is the
  // caller's turn: what `lost` tells of is there until the endpoint's next poll().
  for (std::size_t count = 1; count != 0 && kept == 0;) {
    count = endpoint.poll(others, room());
    for (const message::MessageEvent& event : others.first(count)) {
      if (event.kind == message::EventKind::withdrawn) withdraw(event);
      if (event.kind == message::EventKind::request) {
        accept(event, now);
      } else if (event.kind != message::EventKind::sent || !sent(event)) {
        others[kept++] = event;
      }
    }
  }
  return kept;
}

}  // namespace warpline::rpc
