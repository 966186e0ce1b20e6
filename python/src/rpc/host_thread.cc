// SPDX-License-Identifier: Apache-2.0
#include "rpc/host_thread.h"

#include <csignal>
#include <system_error>
#include <utility>

#include "warpline/protection/key_file.h"

namespace warpline::python {

Result<std::unique_ptr<HostThread>> HostThread::open(rpc::MessageHost::Settings settings, const std::string& key,
                                                     const std::optional<GpuMessages::Settings>& gpu) {
  if (gpu && !key.empty())
    return usage_error("gpu", "with a key as well, and the CPU, which encrypts, does not reach GPU memory",
                       "leave one of them out");
  std::unique_ptr<HostThread> made(new HostThread);
  if (!key.empty()) {
    made->key_ = key;
    WARPLINE_TRY(auto keys, protection::read_key_file(key));
    made->keys_ = std::make_shared<protection::Keys>(std::move(keys));
    WARPLINE_TRY(made->protection_, protection::make_protection(made->keys_, settings.endpoint.max_sessions));
    settings.endpoint.protection = made->protection_.get();
  }
  if (gpu) {
    WARPLINE_TRY(made->gpu_, GpuMessages::open(*gpu, settings.local, settings.endpoint));
  }
  WARPLINE_TRY(rpc::MessageHost host, made->gpu_ ? rpc::MessageHost::over(made->gpu_->transport(), settings)
                                                 : rpc::MessageHost::open(settings));
  made->host_.emplace(std::move(host));
  return made;
}

Result<void> HostThread::read_key_again() {
  if (!keys_) return usage_error("key", "there is none to read again", "give key= when it is made");
  WARPLINE_TRY(auto keys, protection::read_key_file(key_));
  keys_->replace(std::move(keys));
  return {};
}

Result<void> HostThread::start(rpc::LoopPart& part) {
  // Signals are for Python's threads: this one would take them, and nobody would wake those.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  Result<void> started;
  try {
    thread_ = std::thread([this, &part] {
      if (gpu_) gpu_->enter();
      host_->run();
      host_->leave(part);
      // A transport that has failed ends the loop, and nobody else would end the calls that it had.
      rpc::MessageHost* const ends[] = {&*host_};
      rpc::MessageHost::end_handlers(ends);
      ended_.store(true);
      ended_.notify_all();
    });
  } catch (const std::system_error& error) {
    started = environment_error("thread of a host", error.code().message(), "raise `ulimit -u`");
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

void HostThread::join() {
  if (!thread_.joinable()) return;
  host_->stop();
  thread_.join();
}

}  // namespace warpline::python
