// SPDX-License-Identifier: Apache-2.0
#include "warpline/capture/capture.h"

#include <pthread.h>

#include <chrono>
#include <csignal>
#include <utility>

namespace warpline::capture {
namespace {

constexpr std::chrono::microseconds kNap{500};  // nobody makes a system call to wake the thread

/// While it lives, threads that are made take no signals but those of faults.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

Result<std::unique_ptr<Capture>> Capture::open(const CaptureSettings& settings,
                                               const std::vector<CaptureInterface>& interfaces, std::uint32_t sources,
                                               std::string_view application) {
  WARPLINE_TRY(const PacketFilter filter, PacketFilter::compile(settings.filter));
  WARPLINE_TRY(CaptureSources made, CaptureSources::make(sources, settings.what.one_in, settings.snaplen, filter));
  WARPLINE_TRY(CaptureWriter writer, CaptureWriter::open(settings, interfaces, application));
  return std::unique_ptr<Capture>(new Capture(std::move(made), std::move(writer)));
}

void Capture::start() {
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "capture");
}

void Capture::finish() {
  ends_soon_.store(true, std::memory_order_release);
  if (thread_.joinable()) thread_.join();
}

void Capture::run() {
  for (;;) {
    // Read in this order: what sources took before the end was ordered is seen behind it.
    const bool last = ends_soon_.load(std::memory_order_acquire);
    if (writer_.write_some() != 0) continue;
    if (last) return;
    std::this_thread::sleep_for(kNap);
  }
}

}  // namespace warpline::capture
