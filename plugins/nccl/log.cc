// SPDX-License-Identifier: Apache-2.0
#include "nccl/log.h"

#include <atomic>

namespace warpline::nccl {
namespace {

std::atomic<Logger> current{nullptr};

}  // namespace

void log_to(Logger logger) { current.store(logger, std::memory_order_release); }

void log(LogLevel level, const std::string& line) {
  const Logger logger = current.load(std::memory_order_acquire);
  if (logger != nullptr) logger(level, kNetSubsystem, "NET/Warpline", 0, "NET/Warpline : %s", line.c_str());
}

Status report(Status status, const Error& error) {
  log(LogLevel::warn, error.message());
  return status;
}

}  // namespace warpline::nccl
