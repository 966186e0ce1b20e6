// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <sched.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include <rte_lcore.h>
#include <rte_thread.h>
#include <rte_version.h>

#include "vnic/common/log.h"
#include "vnic/engine/engine.h"
#include "vnic/engine/hardware.h"
#include "warpline/base/give_way.h"

namespace warpline::vnic {
namespace {

/// Frames a visit to a receive queue.
constexpr std::uint32_t kBurst = 64;
/// Passes that found nothing to do before the thread lets others run.
constexpr std::uint32_t kIdlePasses = 16;

}  // namespace

std::uint32_t Engine::pass() {
  std::uint32_t frames = 0;
  for (const std::atomic<TxQueue*>& served : served_tx_) {
    TxQueue* const queue = served.load(std::memory_order_acquire);
    if (queue != nullptr && queue->started.load(std::memory_order_acquire)) frames += serve_tx(*queue);
  }
  for (const std::atomic<RxQueue*>& served : served_rx_) {
    RxQueue* const queue = served.load(std::memory_order_acquire);
    if (queue != nullptr && queue->started.load(std::memory_order_acquire)) frames += serve_rx(*queue, kBurst);
  }
  return frames;
}

void Engine::run() {
  std::uint32_t idle = 0;
  Turns turns(true);
  while (!stop_.load(std::memory_order_acquire)) {
    idle = pass() != 0 ? 0 : idle + 1;
    passes_.fetch_add(1, std::memory_order_acq_rel);
    turns.end(idle < kIdlePasses);
  }
}

void Engine::wait_for_pass() const {
  if (!running_) return;
  // The pass under way may have looked before: the next one has not.
  const std::uint64_t now = passes_.load(std::memory_order_acquire);
  while (passes_.load(std::memory_order_acquire) - now < 2) give_way();
}

int Engine::start(const rte_ether_addr* own) {
  if (source_ != nullptr) {
    const std::scoped_lock held(hardware_.egress);
    if (own != nullptr) {
      MacAddress address;
      std::memcpy(address.bytes.data(), own->addr_bytes, address.bytes.size());
      source_->address_to(address);
    }
    source_->start(device_nanos());
  }
  return hardware_.args.engine == EngineKind::thread ? start_thread() : 0;
}

void Engine::stop() {
  stop_thread();
  for (const std::atomic<TxQueue*>& served : served_tx_) {
    TxQueue* const queue = served.load(std::memory_order_acquire);
    if (queue != nullptr && queue->started.load(std::memory_order_acquire)) drain(*queue, *tx_[queue->id]);
  }
  Egress& egress = hardware_.egress;
  const std::scoped_lock held(egress);
  egress.flush(device_nanos());
}

#if RTE_VERSION >= RTE_VERSION_NUM(23, 11, 0, 0)

int Engine::create_thread(const char* name) {
  rte_thread_t created{};
  const auto main = [](void* engine) -> std::uint32_t {
    static_cast<Engine*>(engine)->run();
    return 0;
  };
  const int status = rte_thread_create_control(&created, name, main, this);
  thread_ = static_cast<pthread_t>(created.opaque_id);
  return status;
}

#else

int Engine::create_thread(const char* name) {
  const auto main = [](void* engine) -> void* {
    static_cast<Engine*>(engine)->run();
    return nullptr;
  };
  return rte_ctrl_thread_create(&thread_, name, nullptr, main, this);
}

#endif

int Engine::start_thread() {
  const int cpu = hardware_.args.engine_cpu;
  if (cpu >= CPU_SETSIZE) {
    log_error("%s: cpu=%d: there is no such processor", hardware_.name.c_str(), cpu);
    return -EINVAL;
  }
  stop_.store(false, std::memory_order_relaxed);
  char name[16];
  std::snprintf(name, sizeof name, "vnic-%u", static_cast<unsigned>(hardware_.port_id));
  if (const int status = create_thread(name); status != 0) {
    log_error("%s: its engine's thread was not created: %s", hardware_.name.c_str(), std::strerror(std::abs(status)));
    return -std::abs(status);
  }
  running_ = true;
  if (cpu < 0) return 0;
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(cpu, &only);
  if (const int status = pthread_setaffinity_np(thread_, sizeof only, &only); status != 0) {
    log_error("%s: cpu=%d: %s", hardware_.name.c_str(), cpu, std::strerror(status));
    stop_thread();
    return -status;
  }
  return 0;
}

void Engine::stop_thread() {
  if (!running_) return;
  stop_.store(true, std::memory_order_release);
  pthread_join(thread_, nullptr);
  running_ = false;
}

}  // namespace warpline::vnic
