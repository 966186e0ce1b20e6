// SPDX-License-Identifier: Apache-2.0
#include "sandbox/every_thread.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>
#include <thread>

namespace warpline::sandbox {
namespace {

constexpr std::chrono::seconds kPatience{1};
constexpr std::chrono::microseconds kLook{100};

std::atomic<void (*)()> step_of_all{nullptr};
std::atomic<std::uint32_t> answers{0};
static_assert(std::atomic<void (*)()>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free,
              "used by a signal handler");

void on_signal(int /*signal*/) {
  const int before = errno;
  step_of_all.load(std::memory_order_acquire)();
  answers.fetch_add(1, std::memory_order_release);
  errno = before;
}

std::set<pid_t> other_threads() {
  std::set<pid_t> threads;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
    const std::string name = entry.path().filename();
    pid_t thread = 0;
    std::from_chars(name.data(), name.data() + name.size(), thread);
    if (thread != gettid()) threads.insert(thread);
  }
  return threads;
}

std::string name_of(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

/// Asks a thread, and waits for it. False if it does not answer; one that has ended need not.
bool ask(pid_t thread, int signal) {
  const std::uint32_t before = answers.load(std::memory_order_relaxed);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  if (syscall(SYS_tgkill, getpid(), thread, signal) != 0) return true;
  while (answers.load(std::memory_order_acquire) == before) {
    if (syscall(SYS_tgkill, getpid(), thread, 0) != 0) return true;
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(kLook);
  }
  return true;
}

}  // namespace

std::vector<std::string> run_in_every_thread(void (*step)()) {
  const int signal = SIGRTMAX - 1;
  struct sigaction action{};
  struct sigaction before{};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigfillset(&action.sa_mask);
  sigaction(signal, &action, &before);
  step_of_all.store(step, std::memory_order_release);

  std::vector<std::string> silent;
  std::set<pid_t> asked;
  for (bool news = true; news;) {
    news = false;
    for (const pid_t thread : other_threads()) {
      if (!asked.insert(thread).second) continue;
      news = true;
      if (!ask(thread, signal)) silent.push_back(name_of(thread));
    }
  }
  // The handler stays for a thread that takes the signal later than its second: the default would end the process.
  if (silent.empty()) sigaction(signal, &before, nullptr);
  return silent;
}

}  // namespace warpline::sandbox
