// SPDX-License-Identifier: Apache-2.0
// A driver plugin that means harm: a thread of it, there before the program has given anything up, waits until it has,
// tries what a run must not do, and says by lines "forbidden CALL ERRNO" on stderr what came of it, and "forbidden
// end".
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>

namespace {

bool restricted() {
  std::ifstream file("/proc/thread-self/status");
  for (std::string line; std::getline(file, line);) {
    if (line == "Seccomp_filters:\t2") return true;  // the run's own is the second that it loads
  }
  return false;
}

void tell(const char* call, long result) { std::fprintf(stderr, "forbidden %s %d\n", call, result == -1 ? errno : 0); }

void try_all() {
  while (!restricted()) std::this_thread::yield();
  char* const none[] = {nullptr};
  tell("execve", execve("/bin/true", none, none));
  tell("fork", syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  tell("packet-socket", socket(AF_PACKET, SOCK_RAW, 0));
  tell("tcp-socket", socket(AF_INET, SOCK_STREAM, 0));
  tell("ptrace", ptrace(PTRACE_TRACEME, 0, nullptr, nullptr));
  tell("mount", mount("none", "/mnt", "tmpfs", 0, nullptr));
  tell("unshare", unshare(CLONE_NEWUSER));
  tell("setuid", setuid(1));
  tell("kill-other", kill(getppid(), 0));
  tell("bpf", syscall(SYS_bpf, 0, nullptr, 0));
  tell("init-module", syscall(SYS_init_module, nullptr, 0, ""));
  tell("write-and-run",
       mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1
                                                                                                                 : 0);
  const int memory = memfd_create("code", 0);
  const bool is_there = memory >= 0 && ftruncate(memory, 4096) == 0;
  tell("run-written-file",
       is_there && mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, memory, 0) == MAP_FAILED ? -1 : 0);
  char typed = '\n';
  tell("type-into-terminal", ioctl(0, TIOCSTI, &typed));
  tell("make-file", open("made-by-plugin", O_WRONLY | O_CREAT, 0600));
  tell("write-terminal", open("/dev/tty", O_RDWR));
  tell("read-home", open("/root/.profile", O_RDONLY));
  std::fprintf(stderr, "forbidden end 0\n");
}

[[gnu::constructor]] void load() { std::thread(try_all).detach(); }

}  // namespace
