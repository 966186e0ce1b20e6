// SPDX-License-Identifier: Apache-2.0
#include "run_thread.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <system_error>
#include <utility>

#include "warpline/base/time/clock.h"

namespace warpline::python {
namespace {

std::atomic<bool> one_runs{false};

}  // namespace

Result<config::LoadedConfig> load_command(const std::vector<std::string>& arguments) {
  return config::load(arguments, config::process_environment(), config::read_text_file);
}

Result<void> RunThread::start(std::string_view what, std::function<Result<void>()> run, std::function<void()> over) {
  (void)ticks_per_second();  // is measured when it is first asked for
  if (one_runs.exchange(true)) {
    return usage_error(std::string(what), "another one runs in this process, of Ingest or Streams",
                       "close it first, or use a process for each");
  }
  process_ = getpid();
  // Signals are Python's: all threads of the run, DPDK's too, inherit that they get none.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  Result<void> begun;
  try {
    thread_ = std::thread([this, run = std::move(run), over = std::move(over)] {
      if (const Result<void> done = run(); !done) failure_ = done.error();
      one_runs.store(false);
      over();  // first: who waits for the start looks there next
      const std::lock_guard lock(lock_);
      ended_ = true;
      changed_.notify_all();
    });
  } catch (const std::system_error& error) {
    one_runs.store(false);
    begun = environment_error("thread of a run", error.code().message(), "raise `ulimit -u`");
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return begun;
}

RunThread::~RunThread() {
  if (is_here()) {
    join();
  } else if (thread_.joinable()) {
    thread_.detach();  // it is another process's
  }
}

bool RunThread::is_here() const { return process_ == getpid(); }

bool RunThread::wait_until_started(int milliseconds) {
  std::unique_lock lock(lock_);
  return changed_.wait_for(lock, std::chrono::milliseconds(milliseconds), [this] { return started_ || ended_; });
}

void RunThread::say_started() {
  const std::lock_guard lock(lock_);
  started_ = true;
  changed_.notify_all();
}

void RunThread::join() {
  if (!is_here()) return;
  const std::lock_guard lock(joining_);
  if (thread_.joinable()) thread_.join();
}

void RunThread::say(std::string_view text) {
  const std::lock_guard lock(lock_);
  said_.append(text);
}

std::vector<std::string> RunThread::lines() {
  std::string said;
  {
    const std::lock_guard lock(lock_);
    said.swap(said_);
  }
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < said.size();) {
    const std::size_t end = std::min(said.find('\n', begin), said.size());
    lines.push_back(said.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

}  // namespace warpline::python
