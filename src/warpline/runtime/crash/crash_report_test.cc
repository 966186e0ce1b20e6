// SPDX-License-Identifier: Apache-2.0
#include "warpline/runtime/crash/crash_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "warpline/base/scratch_folder_testing.h"

namespace warpline::runtime {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class CrashReportTest : public testing::Test {
 protected:
  /// Runs `crash` in a process with a crash report, and returns the signal that ended it; 0: none did.
  [[nodiscard]] int signal_that_ends(const std::function<void(CrashReport&)>& crash) const {
    const pid_t child = fork();
    if (child == 0) {
      const rlimit none{0, 0};
      setrlimit(RLIMIT_CORE, &none);
      for (const int fault : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) signal(fault, SIG_DFL);  // no sanitizer's
      {
        const auto report = CrashReport::open(path_, "build: 1.2.3\n");
        if (report) crash(**report);
      }
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }
  [[nodiscard]] static std::string content(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  ScratchFolder folder_;
  fs::path path_ = folder_.path() / "crash";
};

TEST_F(CrashReportTest, EachSignalIsToldAndThenEndsTheProcess) {
  const std::vector<std::pair<int, std::string>> signals = {
      {SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGABRT, "SIGABRT"}, {SIGFPE, "SIGFPE"}, {SIGILL, "SIGILL"}};
  for (const auto& [number, name] : signals) {
    EXPECT_EQ(signal_that_ends([fault = number](CrashReport& report) {
                report.note_counters("packets 1\n");
                report.note_counters("packets 2\n");
                kill(getpid(), fault);
              }),
              number);
    EXPECT_THAT(content(path_), AllOf(StartsWith("build: 1.2.3\ntime: "), HasSubstr(" " + name + " sent by process "),
                                      HasSubstr("counters:\npackets 2\nend\n")));
    fs::remove(path_);
  }
}

TEST_F(CrashReportTest, AFaultOfAnyThreadHasItsAddressAndStack) {
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
  GTEST_SKIP() << "ThreadSanitizer lets no child of a process with threads start some";
#endif
#endif
  EXPECT_EQ(signal_that_ends([](CrashReport& /*report*/) {
              std::thread([] { *reinterpret_cast<volatile int*>(std::uintptr_t{0x10}) = 1; }).join();
            }),
            SIGSEGV);
  const std::string text = content(path_);
  EXPECT_THAT(text, HasSubstr("SIGSEGV at address 0x10\n"));
  const std::size_t stack = text.find("stack:\n");
  ASSERT_NE(stack, std::string::npos);
  const auto frames = std::count(text.begin() + static_cast<std::ptrdiff_t>(stack), text.end(), '[');
  EXPECT_GE(frames, 3);
}

TEST_F(CrashReportTest, AnAbortIsTold) {
  EXPECT_EQ(signal_that_ends([](CrashReport& /*report*/) { std::abort(); }), SIGABRT);
  EXPECT_THAT(content(path_), HasSubstr("SIGABRT"));
}

TEST_F(CrashReportTest, AnEndInOrderLeavesNothing) {
  EXPECT_EQ(signal_that_ends([](CrashReport& report) { report.note_counters("packets 1\n"); }), 0);
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(CrashReportTest, WhatAKilledProcessLeftIsUsedAgain) {
  EXPECT_EQ(signal_that_ends([](CrashReport& /*report*/) { kill(getpid(), SIGKILL); }), SIGKILL);
  EXPECT_TRUE(fs::exists(path_));
  EXPECT_EQ(signal_that_ends([](CrashReport& /*report*/) {}), 0);
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(CrashReportTest, TheLastReportStaysBesideANewStart) {
  EXPECT_EQ(signal_that_ends([](CrashReport& /*report*/) { raise(SIGILL); }), SIGILL);
  const std::string first = content(path_);
  EXPECT_EQ(signal_that_ends([](CrashReport& /*report*/) {}), 0);
  EXPECT_FALSE(fs::exists(path_));
  EXPECT_EQ(content(folder_.path() / "crash.1"), first);
}

TEST_F(CrashReportTest, OneProcessKeepsIt) {
  const auto first = CrashReport::open(path_, "");
  ASSERT_TRUE(first);
  const auto second = CrashReport::open(path_, "");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::usage);
}

TEST_F(CrashReportTest, WhatCannotBeWrittenIsRefused) {
  fs::create_symlink(folder_.path() / "elsewhere", folder_.path() / "link");
  for (const fs::path& path : {folder_.path(), folder_.path() / "no" / "crash", folder_.path() / "link"}) {
    const auto report = CrashReport::open(path, "");
    ASSERT_FALSE(report) << path;
    EXPECT_EQ(report.error().kind, ErrorKind::environment);
  }
}

TEST_F(CrashReportTest, HandlersThatWereThereComeBack) {
  struct sigaction before{};
  sigaction(SIGSEGV, nullptr, &before);
  {
    ASSERT_TRUE(CrashReport::open(path_, ""));
  }
  struct sigaction after{};
  sigaction(SIGSEGV, nullptr, &after);
  EXPECT_EQ(after.sa_handler, before.sa_handler);
}

TEST(BuildId, IsHexadecimal) { EXPECT_THAT(build_id(), testing::MatchesRegex("([0-9a-f][0-9a-f])+")); }

}  // namespace
}  // namespace warpline::runtime
