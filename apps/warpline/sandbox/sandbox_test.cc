// SPDX-License-Identifier: Apache-2.0
#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace warpline::sandbox {
namespace {

namespace fs = std::filesystem;

/// Whether there is a thread of ThreadSanitizer's own, which takes no signals: a note says so.
#if defined(__has_feature)
constexpr bool kHasSilentThread = __has_feature(thread_sanitizer);
#else
constexpr bool kHasSilentThread = false;
#endif

/// Runs `check` in a process of its own, which is restricted for good; what it finds wrong, one line each, is on
/// stderr.
void in_a_child(const std::function<std::vector<std::string>()>& check) {
  const pid_t child = fork();
  if (child == 0) {
    const std::vector<std::string> wrong = check();
    for (const std::string& line : wrong) std::cerr << line << '\n';
    _exit(wrong.empty() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

std::string thread_status(const std::string& field) {
  std::ifstream file("/proc/thread-self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(field + ":\t")) return line.substr(field.size() + 2);
  }
  return "";
}

/// What is wrong with the calling thread.
std::vector<std::string> faults_of_thread(const std::string& who) {
  std::vector<std::string> wrong;
  for (const auto& [field, value] : {std::pair{"CapEff", "0000000000000000"},
                                     {"CapPrm", "0000000000000000"},
                                     {"NoNewPrivs", "1"},
                                     {"Seccomp", "2"}}) {
    if (thread_status(field) != value) wrong.push_back(who + ": " + field + " is " + thread_status(field));
  }
  if (landlock_version() != 0 && open("/var/tmp/warpline-sandbox", O_WRONLY | O_CREAT, 0600) >= 0)
    wrong.push_back(who + " makes files");
  return wrong;
}

class Folder {
 public:
  Folder() {
    std::string pattern = fs::temp_directory_path() / "warpline-sandbox-XXXXXX";
    path = mkdtemp(pattern.data());
  }
  ~Folder() { fs::remove_all(path); }
  fs::path path;
};

TEST(Sandbox, HoldsThreadsThatWereThereAndThoseThatCome) {
  in_a_child([] {
    std::vector<std::string> wrong;
    std::atomic<bool> restricted{false};
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<std::vector<std::string>> found(4);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < 3; ++i) {
      threads.emplace_back([&, i] {  // one polls, the others sleep
        while (i == 0 && !restricted) {
        }
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return restricted.load(); });
        found[i] = faults_of_thread("thread " + std::to_string(i));
      });
    }
    const Result<Restrictions> result = restrict_process({});
    {
      const std::scoped_lock lock(mutex);
      restricted = true;
    }
    changed.notify_all();
    if (!result) return std::vector<std::string>{result.error().message()};
    threads.emplace_back([&] { found[3] = faults_of_thread("a new thread"); });
    for (std::thread& thread : threads) thread.join();
    for (const auto& faults : found) wrong.insert(wrong.end(), faults.begin(), faults.end());
    if (!kHasSilentThread && !result->notes.empty()) wrong.push_back(result->notes.front());
    if (!result->seccomp || !result->no_new_privs || !result->capabilities.empty())
      wrong.push_back("it says otherwise");
    return wrong;
  });
}

TEST(Sandbox, WhatIsForbiddenFails) {
  in_a_child([] {
    if (const Result<Restrictions> result = restrict_process({}); !result) return std::vector{result.error().message()};
    std::vector<std::string> wrong;
    const auto fails = [&](const char* what, long result) {
      if (result != -1 || (errno != EPERM && errno != EACCES))
        wrong.push_back(std::string(what) + " does not fail: " + strerror(errno));
    };
    char* const none[] = {nullptr};
    fails("execve", execve("/bin/true", none, none));
    fails("fork", syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
    fails("a packet socket", socket(AF_PACKET, SOCK_RAW, 0));
    fails("a TCP socket", socket(AF_INET, SOCK_STREAM, 0));
    fails("ptrace", ptrace(PTRACE_TRACEME, 0, nullptr, nullptr));
    fails("mount", mount("none", "/mnt", "tmpfs", 0, nullptr));
    fails("unshare", unshare(CLONE_NEWUSER));
    fails("setuid", setuid(1));
    fails("a signal to init", kill(1, 0));
    fails("bpf", syscall(SYS_bpf, 0, nullptr, 0));
    fails("io_uring", syscall(SYS_io_uring_setup, 1, nullptr));
    fails("memory to write and run",
          mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED
              ? -1
              : 0);
    // Code that is written by one mapping and run by another.
    const int memory = memfd_create("code", 0);
    if (ftruncate(memory, 4096) != 0) wrong.emplace_back("no memory file");
    fails("a file's memory to run",
          mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, memory, 0) == MAP_FAILED ? -1 : 0);
    char typed = '\n';
    fails("TIOCSTI", ioctl(0, TIOCSTI, &typed));
    fails("TIOCSTI with bits that the kernel does not read", syscall(SYS_ioctl, 0, TIOCSTI | (1UL << 40), &typed));
    fails("TIOCLINUX", ioctl(0, TIOCLINUX, &typed));
    if (landlock_version() != 0) {
      for (const char* const device : {"/dev/console", "/dev/tty", "/dev/mem", "/dev/loop0", "/dev/vda", "/dev/kmsg"}) {
        if (fs::exists(device)) fails(device, open(device, O_RDWR | O_NOCTTY | O_NONBLOCK));
      }
      if (open("/dev/null", O_RDWR) < 0 || open("/dev/urandom", O_RDONLY) < 0)
        wrong.emplace_back("/dev/null is closed");
    }
    if (landlock_version() != 0) fails("another's file", open("/root/.profile", O_RDONLY));
    return wrong;
  });
}

TEST(Sandbox, WhatARunNeedsGoesOn) {
  const Folder own;
  std::ofstream(own.path / "read") << "again";
  fs::create_directory(own.path / "write");
  in_a_child([&] {
    if (const Result<Restrictions> result =
            restrict_process({.reads = {own.path / "read"}, .writes = {own.path / "write"}, .secrets = true});
        !result) {
      return std::vector{result.error().message()};
    }
    std::vector<std::string> wrong;
    std::ofstream(own.path / "write" / "made") << "text";
    std::string text;
    std::ifstream(own.path / "write" / "made") >> text;
    if (text != "text") wrong.emplace_back("no file is made in its folder");
    if (!fs::remove(own.path / "write" / "made")) wrong.emplace_back("no file is removed from its folder");
    std::ifstream(own.path / "read") >> text;
    if (text != "again") wrong.emplace_back("its file is not read again");
    if (landlock_version() != 0 && std::ofstream(own.path / "read").is_open())
      wrong.emplace_back("what it reads is written");
    if (std::vector<char>(64 << 20, 'x').back() != 'x') wrong.emplace_back("no memory");
    std::ifstream("/proc/self/statm") >> text;
    if (text == "again") wrong.emplace_back("no /proc");
    if (socket(AF_UNIX, SOCK_STREAM, 0) < 0) wrong.emplace_back("no Unix socket");
    if (read_restrictions().core_dumps) wrong.emplace_back("its memory may be dumped");
    rlimit limit{};
    getrlimit(RLIMIT_CORE, &limit);
    if (limit.rlim_max != 0) wrong.emplace_back("it may have a core file");
    return wrong;
  });
}

TEST(Sandbox, ItIsNotRestrictedBefore) {
  EXPECT_FALSE(read_restrictions().seccomp);
  EXPECT_TRUE(read_restrictions().core_dumps);
}

}  // namespace
}  // namespace warpline::sandbox
