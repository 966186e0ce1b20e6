// SPDX-License-Identifier: Apache-2.0
#include "warpline/runtime/dpdk_log.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <iterator>
#include <mutex>

#include <rte_log.h>

namespace warpline::runtime {
namespace {

constexpr std::uint32_t kLevelUnasked = RTE_LOG_ERR;
constexpr const char* kProgram = "warpline: ";  // argv[0] of rte_eal_init

/// Memory files of the CapturedLog that lives, or -1. Written by the control thread; the handler of crashes reads them.
std::atomic<int> captured_log{-1};
std::atomic<int> captured_output{-1};
static_assert(std::atomic<int>::is_always_lock_free, "read by a signal handler");
/// Held by threads that log, so that the memory file is not closed meanwhile.
std::mutex log_mutex;

/// A second name of the process's stderr, once number 2 has been another's; or -1. Never closed.
std::atomic<int> real_stderr{-1};

/// Async-signal-safe.
void write_all(int file, const char* text, std::size_t length) {
  while (length > 0) {
    const ssize_t written = write(file, text, length);
    if (written <= 0) return;
    text += written;
    length -= static_cast<std::size_t>(written);
  }
}

ssize_t write_log(void*, const char* text, std::size_t length) {
  const std::lock_guard lock(log_mutex);
  const int captured = captured_log.load(std::memory_order_relaxed);
  write_all(captured >= 0 ? captured : STDERR_FILENO, text, length);
  return static_cast<ssize_t>(length);
}

/// Async-signal-safe.
void copy_to_stderr(int file) {
  char text[512];
  off_t at = 0;
  for (ssize_t length = 0; (length = pread(file, text, sizeof text, at)) > 0; at += length) {
    write_all(stderr_descriptor(), text, static_cast<std::size_t>(length));
  }
}

constexpr int kCrashes[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
struct sigaction before_crash[std::size(kCrashes)];  ///< what CapturedLog found; written while no crash is handled

/// Writes what was captured, then lets the crash take its course: the disposition that was there before acts on the
/// instruction that faults again, on abort(), which raises SIGABRT again, or on the signal sent anew.
void tell_before_crash(int signal, siginfo_t* info, void* /*context*/) {
  for (std::size_t i = 0; i < std::size(kCrashes); ++i) sigaction(kCrashes[i], &before_crash[i], nullptr);
  for (const auto* captured : {&captured_output, &captured_log}) {
    const int file = captured->load(std::memory_order_relaxed);
    if (file >= 0) copy_to_stderr(file);
  }
  if (info->si_code <= 0 && signal != SIGABRT) raise(signal);
}

void watch_for_crashes() {
  struct sigaction action{};
  action.sa_sigaction = tell_before_crash;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < std::size(kCrashes); ++i) sigaction(kCrashes[i], &action, &before_crash[i]);
}

void end_watch_for_crashes() {
  for (std::size_t i = 0; i < std::size(kCrashes); ++i) sigaction(kCrashes[i], &before_crash[i], nullptr);
}

std::string first_bytes(int file) {
  char text[4096];
  const ssize_t length = pread(file, text, sizeof text, 0);
  return {text, static_cast<std::size_t>(std::max<ssize_t>(length, 0))};
}

/// "EAL: eth_dev_configure(): why" without what names the code that says it.
std::string without_prefix(std::string line) {
  for (;;) {
    const std::size_t colon = line.find(": ");
    const std::size_t space = line.find(' ');
    if (colon == std::string::npos || space != colon + 1 || line[0] == '/') return line;
    line.erase(0, colon + 2);
  }
}

}  // namespace

int stderr_descriptor() {
  return captured_output.load(std::memory_order_acquire) >= 0 ? real_stderr.load(std::memory_order_relaxed)
                                                              : STDERR_FILENO;
}

void set_log_level(LogLevel level) {
  const auto least = static_cast<std::uint32_t>(level) + RTE_LOG_CRIT;
  rte_log_set_level_pattern("*", least);  // first, for at a global level of debug it would say so of each component
  rte_log_set_global_level(least);
}

void route_dpdk_log() {
  static std::FILE* const stream = [] {
    std::FILE* const file =
        fopencookie(nullptr, "w", {.read = nullptr, .write = write_log, .seek = nullptr, .close = nullptr});
    if (file != nullptr) std::setvbuf(file, nullptr, _IOLBF, BUFSIZ);
    return file;
  }();
  rte_openlog_stream(stream);
}

CapturedLog::CapturedLog(Scope scope) {
  route_dpdk_log();
  log_ = memfd_create("dpdk log", MFD_CLOEXEC);
  captured_log.store(log_, std::memory_order_relaxed);
  watch_for_crashes();
  if (scope == Scope::log) return;
  output_ = memfd_create("dpdk output", MFD_CLOEXEC);
  if (output_ < 0) return;
  std::fflush(stdout);
  std::fflush(stderr);
  saved_stdout_ = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
  if (real_stderr.load(std::memory_order_relaxed) < 0) {
    real_stderr.store(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0), std::memory_order_relaxed);
  } else {
    dup3(STDERR_FILENO, real_stderr.load(std::memory_order_relaxed), O_CLOEXEC);
  }
  captured_output.store(output_, std::memory_order_release);
  dup2(output_, STDOUT_FILENO);
  dup2(output_, STDERR_FILENO);
}

CapturedLog::~CapturedLog() {
  if (output_ >= 0) {
    std::fflush(stdout);
    std::fflush(stderr);
    dup2(saved_stdout_, STDOUT_FILENO);
    dup2(real_stderr.load(std::memory_order_relaxed), STDERR_FILENO);
    captured_output.store(-1, std::memory_order_release);
  }
  end_watch_for_crashes();
  const std::lock_guard lock(log_mutex);
  if (log_ >= 0 && rte_log_get_global_level() > kLevelUnasked) copy_to_stderr(log_);
  captured_log.store(-1, std::memory_order_relaxed);
  for (const int file : {log_, output_, saved_stdout_}) {
    if (file >= 0) close(file);
  }
}

std::string CapturedLog::reason(const std::string& otherwise) const {
  std::string text;
  if (output_ >= 0) {
    std::fflush(stdout);
    std::fflush(stderr);
    text = first_bytes(output_);
  }
  // getopt's complaint names the argument, the log only says that there was a wrong one.
  if (!text.starts_with(kProgram)) text.insert(0, first_bytes(log_));
  const std::string first = without_prefix(text.substr(0, text.find('\n')));
  return first.empty() ? otherwise : first;
}

}  // namespace warpline::runtime
