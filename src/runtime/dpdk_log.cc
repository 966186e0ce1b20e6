// SPDX-License-Identifier: Apache-2.0
#include "runtime/dpdk_log.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <mutex>

#include <rte_log.h>

namespace warpline {
namespace {

constexpr const char* kProgram = "warpline: ";  // argv[0] of rte_eal_init

/// Written by any thread that logs.
struct Sink {
  std::mutex mutex;
  bool capturing = false;
  std::string captured;
};

Sink& sink() {
  static Sink the_sink;
  return the_sink;
}

ssize_t write_log(void*, const char* text, std::size_t length) {
  const std::lock_guard lock(sink().mutex);
  if (sink().capturing) {
    sink().captured.append(text, length);
  } else {
    std::fwrite(text, 1, length, stderr);
  }
  return static_cast<ssize_t>(length);
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
  {
    const std::lock_guard lock(sink().mutex);
    sink().capturing = true;
    sink().captured.clear();
  }
  if (scope == Scope::log) return;
  std::fflush(stdout);
  std::fflush(stderr);
  output_ = memfd_create("dpdk output", MFD_CLOEXEC);
  if (output_ < 0) return;
  saved_stdout_ = dup(STDOUT_FILENO);
  saved_stderr_ = dup(STDERR_FILENO);
  dup2(output_, STDOUT_FILENO);
  dup2(output_, STDERR_FILENO);
}

CapturedLog::~CapturedLog() {
  if (output_ >= 0) {
    std::fflush(stdout);
    std::fflush(stderr);
    dup2(saved_stdout_, STDOUT_FILENO);
    dup2(saved_stderr_, STDERR_FILENO);
    for (const int file : {output_, saved_stdout_, saved_stderr_}) close(file);
  }
  const std::lock_guard lock(sink().mutex);
  sink().capturing = false;
}

std::string CapturedLog::reason(const std::string& otherwise) const {
  std::string text;
  if (output_ >= 0) {
    std::fflush(stdout);
    std::fflush(stderr);
    char printed[4096];
    const ssize_t length = pread(output_, printed, sizeof printed, 0);
    text.assign(printed, static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  }
  // getopt's complaint names the argument, the log only says that there was a wrong one.
  if (!text.starts_with(kProgram)) {
    const std::lock_guard lock(sink().mutex);
    text.insert(0, sink().captured);
  }
  const std::string first = without_prefix(text.substr(0, text.find('\n')));
  return first.empty() ? otherwise : first;
}

}  // namespace warpline
