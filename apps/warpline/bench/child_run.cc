// SPDX-License-Identifier: Apache-2.0
#include "bench/child_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <span>

#include "warpline/report/live.h"

namespace warpline::bench {
namespace {

constexpr std::size_t kErrorsKept = 4096;
constexpr double kLookForStopSeconds = 0.02;
constexpr double kPatienceSeconds = 0.5;  ///< with a child that was interrupted

/// What the child writes, and the end of the pipe to read it from. Closed when the child has closed its own.
class Drain {
 public:
  Drain() = default;
  Drain(const Drain&) = delete;
  Drain& operator=(const Drain&) = delete;
  ~Drain() {
    for (const int end : ends_) {
      if (end >= 0) close(end);
    }
  }
  [[nodiscard]] bool open() { return pipe2(ends_.data(), O_CLOEXEC) == 0; }
  [[nodiscard]] int writer() const { return ends_[1]; }
  [[nodiscard]] int reader() const { return ends_[0]; }
  void close_writer() { shut(ends_[1]); }
  /// After poll() has found something to read, or the end.
  void read_some(std::string& text) {
    std::array<char, 65536> chunk;
    const ssize_t got = read(ends_[0], chunk.data(), chunk.size());
    if (got > 0) {
      text.append(chunk.data(), static_cast<std::size_t>(got));
    } else if (got == 0 || errno != EINTR) {
      shut(ends_[0]);
    }
  }

 private:
  static void shut(int& end) {
    close(end);
    end = -1;
  }
  std::array<int, 2> ends_{-1, -1};
};

int spawn(pid_t& child, const std::string& program, const std::vector<std::string>& arguments, const Drain& output,
          const Drain& errors) {
  std::vector<char*> words{const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output.writer(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors.writer(), STDERR_FILENO);
  // Whoever stops by signals blocks them in its threads.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  const int error = posix_spawn(&child, program.c_str(), &actions, &attributes, words.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

/// Reads both pipes until their ends, the deadline or the stop; false at the latter two.
bool collect(Drain& output, Drain& errors, double deadline_s, const std::atomic<bool>* stop, ChildRun& run) {
  while (output.reader() >= 0 || errors.reader() >= 0) {
    double left_s = deadline_s - report::monotonic_seconds();
    if (left_s <= 0 || (stop != nullptr && stop->load(std::memory_order_relaxed))) return false;
    if (stop != nullptr) left_s = std::min(left_s, kLookForStopSeconds);
    std::array<pollfd, 2> waited{pollfd{output.reader(), POLLIN, 0}, pollfd{errors.reader(), POLLIN, 0}};
    if (poll(waited.data(), waited.size(), static_cast<int>(left_s * 1e3) + 1) < 0 && errno != EINTR) return false;
    if (waited[0].revents != 0) output.read_some(run.output);
    if (waited[1].revents != 0) errors.read_some(run.errors);
    if (run.errors.size() > 2 * kErrorsKept) run.errors.erase(0, run.errors.size() - kErrorsKept);
  }
  return true;
}

}  // namespace

Result<ChildRun> run_child(const std::string& program, const std::vector<std::string>& arguments, Nanos limit,
                           const std::atomic<bool>* stop) {
  const std::string what = fmt::format("cannot run {} {}", program, fmt::join(arguments, " "));
  Drain output, errors;
  pid_t child = 0;
  int error = output.open() && errors.open() ? 0 : errno;
  if (error == 0) error = spawn(child, program, arguments, output, errors);
  if (error != 0) return environment_error(what, std::strerror(error), "end other programs, or raise `ulimit -n -u`");
  output.close_writer();
  errors.close_writer();

  ChildRun run;
  const double deadline_s = report::monotonic_seconds() + static_cast<double>(limit.value) / 1e9;
  bool ended = collect(output, errors, deadline_s, stop, run);
  if (!ended && stop != nullptr && stop->load(std::memory_order_relaxed)) {
    kill(child, SIGINT);
    ended = collect(output, errors, report::monotonic_seconds() + kPatienceSeconds, nullptr, run);
  }
  run.timed_out = !ended;
  if (run.timed_out) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  run.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return run;
}

}  // namespace warpline::bench
