// SPDX-License-Identifier: Apache-2.0
#include "sandbox/allowed_calls.h"

#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace warpline::sandbox {
namespace {

// By their names, for some are not of every architecture.
constexpr const char* kMemory[] = {"brk",   "madvise", "membarrier", "mincore",       "mlock", "mlock2",       "mremap",
                                   "msync", "munlock", "munmap",     "get_mempolicy", "mbind", "set_mempolicy"};
constexpr const char* kThreads[] = {"exit",
                                    "exit_group",
                                    "futex",
                                    "get_robust_list",
                                    "set_robust_list",
                                    "rseq",
                                    "sched_getaffinity",
                                    "sched_setaffinity",
                                    "sched_getparam",
                                    "sched_getscheduler",
                                    "sched_setscheduler",
                                    "sched_get_priority_max",
                                    "sched_get_priority_min",
                                    "sched_yield",
                                    "set_tid_address",
                                    "arch_prctl"};
constexpr const char* kSignals[] = {"pause",         "restart_syscall", "rt_sigaction",
                                    "rt_sigpending", "rt_sigprocmask",  "rt_sigreturn",
                                    "rt_sigsuspend", "rt_sigtimedwait", "sigaltstack"};
constexpr const char* kTime[] = {
    "alarm",        "clock_getres", "clock_gettime", "clock_nanosleep", "gettimeofday",    "nanosleep",      "time",
    "timer_create", "timer_delete", "timer_settime", "timerfd_create",  "timerfd_gettime", "timerfd_settime"};
constexpr const char* kIdentity[] = {"getcpu",  "getegid",   "geteuid",   "getgid",    "getpgrp", "getpid",
                                     "getppid", "getrandom", "getrlimit", "getrusage", "gettid",  "getuid",
                                     "sysinfo", "times",     "uname",     "capget"};
constexpr const char* kWaiting[] = {"epoll_create", "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2",
                                    "epoll_wait",   "eventfd2",      "pipe2",     "poll",        "ppoll",
                                    "pselect6",     "select",        "eventfd",   "pipe",        "pidfd_open"};
constexpr const char* kFiles[] = {
    "access",     "close",     "dup",      "dup3",    "faccessat",    "faccessat2", "fadvise64",  "fallocate",
    "fcntl",      "fdatasync", "flock",    "fstat",   "fstatfs",      "fsync",      "ftruncate",  "getcwd",
    "getdents64", "ioctl",     "lseek",    "lstat",   "memfd_create", "newfstatat", "open",       "openat",
    "pread64",    "preadv",    "pwrite64", "pwritev", "read",         "readlink",   "readlinkat", "readv",
    "rmdir",      "stat",      "statfs",   "statx",   "umask",        "unlink",     "unlinkat",   "write",
    "writev",     "dup2",      "getdents"};
constexpr const char* kSockets[] = {"accept",     "accept4", "bind",       "connect",  "getpeername", "getsockname",
                                    "getsockopt", "listen",  "recvfrom",   "recvmmsg", "recvmsg",     "sendmmsg",
                                    "sendmsg",    "sendto",  "setsockopt", "shutdown", "socketpair"};

/// What an argument of a call must be; seccomp.h's own macros leave a field out, which Clang warns of.
constexpr scmp_arg_cmp argument(unsigned number, scmp_compare how, scmp_datum_t first, scmp_datum_t second = 0) {
  return {.arg = number, .op = how, .datum_a = first, .datum_b = second};
}

class Filter {
 public:
  /// Starts with an action for all calls; where several filters are loaded the strictest action counts.
  explicit Filter(std::uint32_t otherwise) : context_(seccomp_init(otherwise), seccomp_release) {
    if (context_ == nullptr) {
      problem_ = -ENOMEM;
      return;
    }
    // The errno of a load is then the kernel's own.
    problem_ = seccomp_attr_set(context_.get(), SCMP_FLTATR_API_SYSRAWRC, 1);
    if (problem_ == 0) problem_ = seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_TSYNC, 1);
    if (problem_ == -EOPNOTSUPP) problem_ = -refusal();
  }

  template <std::size_t kCalls>
  void allow(const char* const (&names)[kCalls]) {
    for (const char* const name : names) add(SCMP_ACT_ALLOW, name);
  }

  /// Adds a rule; a call that this architecture does not have needs none.
  template <typename... Conditions>
  void add(std::uint32_t action, const char* name, Conditions... conditions) {
    const int call = seccomp_syscall_resolve_name(name);
    if (problem_ != 0 || call < 0) return;
    problem_ = seccomp_rule_add(context_.get(), action, call, sizeof...(conditions), conditions...);
  }

  [[nodiscard]] Result<void> load() {
    if (problem_ == 0) problem_ = seccomp_load(context_.get());
    if (problem_ == 0) return {};
    return environment_error("cannot restrict system calls", std::strerror(-problem_), "add --keep-privileges");
  }

 private:
  /// Returns the errno with which the kernel refuses seccomp(2), which libseccomp takes for a kernel that is too old.
  static int refusal() {
    std::uint32_t action = SECCOMP_RET_ERRNO;
    return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0 ? EOPNOTSUPP : errno;
  }

  std::unique_ptr<void, void (*)(scmp_filter_ctx)> context_;
  int problem_ = 0;  ///< the first error, as a negative errno; 0: none
};

/// Refuses the requests by which a process types into its terminal, that is into the shell that started it.
Result<void> refuse_typing() {
  constexpr std::uint64_t kRequest = 0xffffffff;  // the kernel reads 32 bits
  Filter filter(SCMP_ACT_ALLOW);
  for (const std::uint64_t request : {TIOCSTI, TIOCLINUX}) {
    filter.add(SCMP_ACT_ERRNO(EPERM), "ioctl", argument(1, SCMP_CMP_MASKED_EQ, kRequest, request));
  }
  return filter.load();
}

}  // namespace

Result<void> allow_calls(const Needs& needs) {
  WARPLINE_CHECK(refuse_typing());
  Filter filter(SCMP_ACT_ERRNO(EPERM));
  filter.allow(kMemory);
  filter.allow(kThreads);
  filter.allow(kSignals);
  filter.allow(kTime);
  filter.allow(kIdentity);
  filter.allow(kWaiting);
  filter.allow(kFiles);
  filter.allow(kSockets);
  // No other process is told anything, nor its limits changed.
  const auto self = static_cast<std::uint64_t>(getpid());
  filter.add(SCMP_ACT_ALLOW, "tgkill", argument(0, SCMP_CMP_EQ, self));
  filter.add(SCMP_ACT_ALLOW, "kill", argument(0, SCMP_CMP_EQ, self));
  filter.add(SCMP_ACT_ALLOW, "rt_tgsigqueueinfo", argument(0, SCMP_CMP_EQ, self));
  filter.add(SCMP_ACT_ALLOW, "prlimit64", argument(2, SCMP_CMP_EQ, 0));
  // No memory becomes executable: two mappings of one file, one to write and one to run, would be as good as one for
  // both.
  filter.add(SCMP_ACT_ALLOW, "mprotect", argument(2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
  filter.add(SCMP_ACT_ALLOW, "mmap", argument(2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
  // New threads, and no new processes. clone3, whose flags are not to be seen, is not there: glibc then uses clone.
  filter.add(SCMP_ACT_ERRNO(ENOSYS), "clone3");
  filter.add(SCMP_ACT_ALLOW, "clone", argument(0, SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
  // Sockets to ask interfaces of the kernel, and to programs of this machine; none that sees frames of others.
  filter.add(SCMP_ACT_ALLOW, "socket", argument(0, SCMP_CMP_EQ, AF_UNIX));
  if (needs.asks_kernel) {
    for (const std::uint64_t family : {AF_INET, AF_INET6, AF_NETLINK}) {
      filter.add(SCMP_ACT_ALLOW, "socket", argument(0, SCMP_CMP_EQ, family));
    }
  }
  if (needs.xdp) filter.add(SCMP_ACT_ALLOW, "bpf");
  // The last names memory (PR_SET_VMA).
  for (const std::uint64_t what :
       {PR_SET_NAME, PR_GET_NAME, PR_GET_DUMPABLE, PR_GET_NO_NEW_PRIVS, PR_GET_SECCOMP, 0x53564d41}) {
    filter.add(SCMP_ACT_ALLOW, "prctl", argument(0, SCMP_CMP_EQ, what));
  }
  return filter.load();
}

}  // namespace warpline::sandbox
