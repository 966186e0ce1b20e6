// SPDX-License-Identifier: Apache-2.0
#include "warpline/handoff/lanes/host_lane.h"

#include <fmt/core.h>
#include <pthread.h>
#include <sched.h>

#include <cerrno>
#include <memory>
#include <system_error>

#include "warpline/base/time/clock.h"

namespace warpline::handoff {
namespace {

/// A CPU set large enough for any CPU number, by the CPU_ALLOC family of sched.h.
int pin(pthread_t thread, unsigned cpu) {
  cpu_set_t* const set = CPU_ALLOC(cpu + 1);
  if (set == nullptr) return ENOMEM;
  const std::size_t size = CPU_ALLOC_SIZE(cpu + 1);
  CPU_ZERO_S(size, set);
  CPU_SET_S(cpu, size, set);
  const int error = pthread_setaffinity_np(thread, size, set);
  CPU_FREE(set);
  return error;
}

/// Kernels that are in work when they are told to stop end within a millisecond after the burst in hand.
constexpr Nanos kStopPatience{1'000'000'000};

bool await_end(const std::atomic<bool>& ended, Nanos timeout) {
  const std::uint64_t begin = ticks_now();
  const std::uint64_t patience = timeout.value > 0 ? nanos_to_ticks(timeout) : 0;
  while (!ended.load(std::memory_order_acquire)) {
    if (ticks_now() - begin > patience) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace

Result<std::thread> start_lane_thread(const std::string& name, std::optional<unsigned> cpu,
                                      std::function<void()> body) {
  // The body runs only once the thread is where it belongs: memory that it touches first is then near.
  enum Gate { kWait, kGo, kGiveUp };
  const auto gate = std::make_shared<std::atomic<Gate>>(kWait);
  std::thread thread;
  try {
    thread = std::thread([gate, body = std::move(body)] {
      gate->wait(kWait, std::memory_order_acquire);
      if (gate->load(std::memory_order_acquire) == kGo) body();
    });
  } catch (const std::system_error& error) {
    return environment_error("the thread " + name + " cannot be started", error.code().message(),
                             "raise the limit shown by `ulimit -u`");
  }
  pthread_setname_np(thread.native_handle(), name.substr(0, 15).c_str());
  const int error = cpu ? pin(thread.native_handle(), *cpu) : 0;
  gate->store(error == 0 ? kGo : kGiveUp, std::memory_order_release);
  gate->notify_one();
  if (error == 0) return thread;
  thread.join();
  return environment_error(fmt::format("the thread {} cannot be pinned to CPU {}", name, *cpu),
                           std::generic_category().message(error),
                           "choose among the CPUs that `taskset -cp $$` lists, or use fewer lanes");
}

bool end_gpu_thread(StopView view, const std::atomic<bool>& ended, Nanos timeout) {
  view.request_stop(RingStop::drain);
  if (await_end(ended, timeout)) return true;
  view.request_stop(RingStop::now);
  return await_end(ended, kStopPatience);
}

}  // namespace warpline::handoff
