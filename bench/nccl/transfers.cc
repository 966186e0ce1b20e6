// SPDX-License-Identifier: Apache-2.0
// nccl_transfers WAY SECONDS BYTES...: two processes of this machine, and transfers between them: round trips, and as
// many one way as go. WAY is a plugin's file, or tcp:N for N TCP connections with a thread each. One line of JSON a
// length.
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "warpline/base/random.h"
#include "ways.h"

extern char** environ;

namespace warpline::bench_nccl {
namespace {

constexpr int kPeer = 3;
constexpr std::size_t kLongestRoundTrip = 1 << 20;  ///< longer transfers are a matter of throughput

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::uint8_t pattern(std::size_t bytes, std::size_t at) {
  return static_cast<std::uint8_t>(mix64(bytes + at / 8) >> at % 8 * 8);
}

/// One of the two processes.
class Side {
 public:
  Side(int rank, const std::string& way, double seconds) : rank_(rank), seconds_(seconds) {
    constexpr std::string_view kTcp = "tcp:";
    way_ = way.rfind(kTcp, 0) == 0 ? make_tcp_way(kPeer, rank, std::strtoull(way.c_str() + kTcp.size(), nullptr, 10))
                                   : make_plugin_way(way, kPeer);
  }

  void measure(std::size_t bytes) {
    std::vector<std::uint8_t> buffer(bytes);
    verify(bytes);
    const double round_trip =
        bytes <= kLongestRoundTrip ? timed([&](std::size_t count) { way_->ping_pong(buffer, count, rank_); }) : 0;
    const double transfer = timed([&](std::size_t count) {
      if (rank_ == 0) way_->send(buffer, count);
      if (rank_ == 1) way_->receive(buffer, count);
    });
    if (rank_ != 0) return;
    (void)std::printf(R"({"bytes": %zu, "round_trip_ns": %.0f, "bytes_per_s": %.6g})"
                      "\n",
                      bytes, round_trip * 1e9, static_cast<double>(bytes) / transfer);
    (void)std::fflush(stdout);
  }

 private:
  void verify(std::size_t bytes) {
    std::vector<std::uint8_t> buffer(bytes);
    if (rank_ == 0) {
      for (std::size_t i = 0; i < bytes; ++i) buffer[i] = pattern(bytes, i);
      way_->send(buffer, 3);
    } else {
      way_->receive(buffer, 3);
      for (std::size_t i = 0; i < bytes; ++i) {
        if (buffer[i] != pattern(bytes, i)) fail("bytes came otherwise than they were sent");
      }
    }
  }

  /// Seconds that one of those takes of which `work` does a number: as many as fill the time, after a few to learn it.
  template <typename Work>
  double timed(const Work& work) {
    double each = 0;
    std::size_t count = 8;
    for (int i = 0; i < 3; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      work(count);
      each = seconds_since(begin) / static_cast<double>(count);
      const double part = i == 0 ? 0.1 : 1.0;
      count = std::max<std::size_t>(8, static_cast<std::size_t>(seconds_ * part / each));
      if (rank_ == 0) tell(kPeer, &count, sizeof count);
      if (rank_ == 1) hear(kPeer, &count, sizeof count);
    }
    return each;
  }

  int rank_;
  double seconds_;
  std::unique_ptr<Way> way_;
};

/// Starts both and waits; returns the exit code.
int start(int argc, char** argv) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) fail("a socket pair");
  std::array<pid_t, 2> pids{};
  for (std::size_t rank = 0; rank < 2; ++rank) {
    std::string number = "--rank=" + std::to_string(rank);
    std::vector<char*> arguments(argv, argv + argc);
    arguments.push_back(number.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[rank], kPeer);
    if (::posix_spawn(&pids[rank], "/proc/self/exe", &actions, nullptr, arguments.data(), environ) != 0)
      fail("a process");
    posix_spawn_file_actions_destroy(&actions);
  }
  for (const int end : ends) ::close(end);
  int worst = 0;
  for (const pid_t pid : pids) {
    int status = 0;
    (void)::waitpid(pid, &status, 0);
    worst = std::max(worst, WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  }
  return worst;
}

}  // namespace
}  // namespace warpline::bench_nccl

int main(int argc, char** argv) {
  if (argc < 4) {
    (void)std::fprintf(stderr, "nccl_transfers PLUGIN|tcp:N SECONDS BYTES...\n");
    return 2;
  }
  const std::string last = argv[argc - 1];
  constexpr std::string_view kRank = "--rank=";
  if (last.rfind(kRank, 0) != 0) return warpline::bench_nccl::start(argc, argv);
  (void)::setenv("LOCAL_RANK", last.c_str() + kRank.size(), 1);  // as torchrun does
  warpline::bench_nccl::Side side(std::atoi(last.c_str() + kRank.size()), argv[1], std::atof(argv[2]));
  for (int i = 3; i < argc - 1; ++i) side.measure(std::strtoull(argv[i], nullptr, 10));
  return 0;
}
