// SPDX-License-Identifier: Apache-2.0
// Every script of tests/stream/scripts against a StreamReceiver, alone and with a lane, and against the kernel's TCP.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "kernel_subject.h"
#include "receiver_subject.h"
#include "script.h"

namespace warpline::stream_script {
namespace {

constexpr std::size_t kAtLeast = 100;  ///< scripts there are
constexpr unsigned kThreads = 8;       ///< most of which wait for the kernel

std::vector<Script> all_scripts() {
  const std::filesystem::path root = WARPLINE_STREAM_SCRIPTS;
  const char* const wanted = std::getenv("WARPLINE_STREAM_SCRIPT");
  std::vector<Script> scripts;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().extension() != ".pkt") continue;
    const std::string name = std::filesystem::relative(entry.path(), root).string();
    if (wanted != nullptr && name.find(wanted) == std::string::npos) continue;
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    Result<Script> script = parse_script(text.str(), name);
    if (script.ok()) {
      scripts.push_back(std::move(script).value());
    } else {
      ADD_FAILURE() << script.error().message();
    }
  }
  std::ranges::sort(scripts, {}, &Script::name);
  if (wanted == nullptr) {
    EXPECT_GE(scripts.size(), kAtLeast);
  }
  return scripts;
}

template <typename SubjectType>
std::string outcome(const Script& script) {
  auto subject = SubjectType::create(script);
  if (!subject.ok()) return script.name + ": " + subject.error().message();
  return run_script(script, **subject);
}

TEST(StreamScripts, HoldForTheReceiver) {
  for (const Script& script : all_scripts()) {
    const std::string failure = outcome<ReceiverSubject>(script);
    EXPECT_EQ(failure, "");
  }
}

TEST(StreamScripts, HoldForTheReceiverWithALane) {
  for (const Script& script : all_scripts()) {
    const std::string failure = outcome<LaneSubject>(script);
    EXPECT_EQ(failure, "");
  }
}

TEST(StreamScripts, HoldForTheReceiverWithALaneWithQueues) {
  for (const Script& script : all_scripts()) {
    const std::string failure = outcome<QueueSubject<false>>(script);
    EXPECT_EQ(failure, "");
  }
}

/// Whoever writes acknowledgements, the bytes are the same.
template <typename T>
class AcknowledgingSubjects : public testing::Test {};
using Acknowledging = testing::Types<AcknowledgingLaneSubject, QueueSubject<true>>;
TYPED_TEST_SUITE(AcknowledgingSubjects, Acknowledging);

TYPED_TEST(AcknowledgingSubjects, SendTheSameBytes) {
  std::uint64_t by_lane = 0;
  for (const Script& script : all_scripts()) {
    SCOPED_TRACE(script.name);
    const auto subject = TypeParam::create(script);
    ASSERT_TRUE(subject.ok()) << subject.error().message();
    EXPECT_EQ(run_script(script, **subject), "");
    const auto plain = ReceiverSubject::create(script);
    ASSERT_TRUE(plain.ok()) << plain.error().message();
    EXPECT_EQ(run_script(script, **plain), "");
    EXPECT_EQ((*subject)->sent(), (*plain)->sent());
    EXPECT_EQ((*subject)->counters().acknowledgements.get(), (*plain)->counters().acknowledgements.get());
    by_lane += (*subject)->counters().lane_acknowledgements.get();
  }
  if (std::getenv("WARPLINE_STREAM_SCRIPT") == nullptr) {
    EXPECT_GT(by_lane, 100U);
  }
}

/// Counts the times that this process stood still for longer than scripts for the kernel, whose clock runs on, allow.
class StallWatch {
 public:
  /// Those until now: waits for the watch's next round, which notices one that has just ended.
  [[nodiscard]] unsigned stalls() const {
    rounds_.wait(rounds_);
    return stalls_;
  }

 private:
  void watch(const std::stop_token& stop) {
    std::mutex lock;
    std::unique_lock guard(lock);
    std::condition_variable_any ended;
    while (!stop.stop_requested()) {
      const auto begin = std::chrono::steady_clock::now();
      ended.wait_for(guard, stop, std::chrono::milliseconds(10), [] { return false; });
      if (std::chrono::steady_clock::now() - begin > std::chrono::milliseconds(300)) ++stalls_;
      ++rounds_;
      rounds_.notify_all();
    }
  }

  std::atomic<unsigned> stalls_{0};
  std::atomic<unsigned> rounds_{0};
  std::jthread thread_{[this](const std::stop_token& stop) { watch(stop); }};
};

TEST(StreamScripts, HoldForTheKernel) {
  if (::geteuid() != 0) GTEST_SKIP() << "network namespaces need root";
  std::vector<Script> scripts = all_scripts();
  const std::size_t all = scripts.size();
  std::erase_if(scripts, [](const Script& script) { return !script.without_kernel.empty(); });
  if (std::getenv("WARPLINE_STREAM_SCRIPT") == nullptr) {
    EXPECT_GE(scripts.size() * 2, all) << "the kernel is asked too seldom";
  }
  std::atomic<std::size_t> next{0};
  std::mutex lock;
  std::vector<std::string> failures;
  StallWatch stall_watch;
  const auto work = [&](const Script& script) {
    std::string failure;
    unsigned stalls = 0;
    do {
      stalls = stall_watch.stalls();
      failure = outcome<KernelSubject>(script);
    } while (!failure.empty() && stalls != stall_watch.stalls());
    const std::lock_guard guard(lock);
    if (!failure.empty()) failures.push_back(std::move(failure));
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (std::size_t at = next++; at < scripts.size(); at = next++) work(scripts[at]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::ranges::sort(failures);
  for (const std::string& failure : failures) ADD_FAILURE() << failure;
}

/// What the runner must not let pass: each of these says something that is not so.
TEST(StreamScripts, FailWhereTheyAreWrong) {
  constexpr std::string_view kOpen =
      "< S 0:0(0) win 65535 <mss 1460>\n> S. 0:0(0) ack 1 win 65535 <mss 1460>\n< . 1:1(0) ack 1\naccept\n";
  const std::string_view wrong[] = {"> . 1:1(0) ack 1",                                   // nothing is sent
                                    "< P. 1:11(10) ack 1\n+.04 > . 1:1(0) ack 12",        // another number
                                    "< P. 1:11(10) ack 1\n+.04 > . 2:2(0) ack 11",        // another sequence number
                                    "< P. 1:11(10) ack 1\n+.04 > F. 1:1(0) ack 11",       // other flags
                                    "< P. 1:11(10) ack 1\n+.04 > . 1:1(0) ack 11 win 7",  // another window
                                    "< P. 1:11(10) ack 1\n+.04 > . 1:1(0) ack 11 <sack 1:2>",  // other options
                                    "< P. 1:11(10) ack 1\n+.04 > . 1:1(0) ack 11 peer 2",      // another peer
                                    "< P. 1:11(10) ack 1\n+.02 > . 1:1(0) ack 11",             // later
                                    "< P. 1:11(10) ack 1\n+.06 > . 1:1(0) ack 11",             // earlier
                                    "< P. 1:11(10) ack 1\n+.1 readable 10",  // an acknowledgement that no line expects
                                    "< P. 21:31(10) ack 1",                  // likewise, at the end
                                    "< P. 1:11(10) ack 1 fill 7\nread 10\n+.04 > . 1:1(0) ack 11",  // other bytes
                                    "readable 1",
                                    "eof",
                                    "reset",
                                    "timed-out",
                                    "urgent 1",
                                    "read 1",
                                    "connections 2",
                                    "count stored 1",
                                    "accept peer 2",
                                    "close peer 2",
                                    "+1 readable 0\n0.5 readable 0"};
  for (const std::string_view lines : wrong) {
    Result<Script> script = parse_script(std::string(kOpen) + std::string(lines), "wrong");
    ASSERT_TRUE(script.ok()) << script.error().message();
    EXPECT_NE(outcome<ReceiverSubject>(script.value()), "") << lines;
    EXPECT_NE(outcome<LaneSubject>(script.value()), "") << lines;
  }
  Result<Script> right =
      parse_script(std::string(kOpen) + "< P. 1:11(10) ack 1\n+.04 > . 1:1(0) ack 11\nread 10", "right");
  ASSERT_TRUE(right.ok());
  EXPECT_EQ(outcome<ReceiverSubject>(right.value()), "");
}

TEST(StreamScripts, AreRefusedWhereTheyMakeNoSense) {
  const std::string_view wrong[] = {"< S 0:1(0)",
                                    "< X 0:0(0)",
                                    "< SS 0:0(0)",
                                    "< S 0",
                                    "< S 0:0(0) ack",
                                    "< S 0:0(0) ack x",
                                    "< S 0:0(0) <mss",
                                    "< S 0:0(0) <mss 65536>",
                                    "< S 0:0(0) <TS 1>",
                                    "< S 0:0(0) <raw abc>",
                                    "< S 0:0(0) <sack>",
                                    "< S 0:0(0) <soup>",
                                    "> . 1:2(1) ack 1",
                                    "* < S 0:0(0)",
                                    "+2~1 > . 1:1(0)",
                                    "+1.0000000001 accept",
                                    "dance",
                                    "read",
                                    "count soup 1",
                                    "read 1 2",
                                    "set soup 1",
                                    "set ring",
                                    "without linux:",
                                    "without",
                                    "+x accept",
                                    "< S 0:0(0) doff 16",
                                    "read 5000000000",
                                    "set ring 1 2"};
  for (const std::string_view text : wrong) EXPECT_FALSE(parse_script(text, "wrong").ok()) << text;
  const auto error = parse_script("\n# fine\nset soup 1\n", "here.pkt");
  ASSERT_FALSE(error.ok());
  EXPECT_EQ(error.error().kind, ErrorKind::usage);
  EXPECT_TRUE(error.error().what.ends_with("here.pkt:3")) << error.error().what;
}

}  // namespace
}  // namespace warpline::stream_script
