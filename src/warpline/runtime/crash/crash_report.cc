// SPDX-License-Identifier: Apache-2.0
#include "warpline/runtime/crash/crash_report.h"

#include <execinfo.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string_view>
#include <utility>

namespace warpline::runtime {
namespace {

constexpr int kReported[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
constexpr std::string_view kNames[] = {"SIGSEGV", "SIGBUS", "SIGABRT", "SIGFPE", "SIGILL"};
constexpr int kDeepest = 64;         // frames of a stack
constexpr unsigned kPatience_s = 5;  // for a handler that waits for a lock which the crash has left closed

// What the handler reads.
std::atomic<int> report_file{-1};
std::atomic<const std::string*> report_head{nullptr};
std::atomic<const std::string*> report_counters{nullptr};
std::atomic<bool> report_begun{false};
static_assert(std::atomic<const std::string*>::is_always_lock_free && std::atomic<int>::is_always_lock_free,
              "used by a signal handler");

struct sigaction before_report[std::size(kReported)];

/// Text of a bounded length; async-signal-safe.
class Line {
 public:
  Line& operator<<(std::string_view text) {
    const std::size_t length = std::min(text.size(), sizeof text_ - length_);
    std::memcpy(text_ + length_, text.data(), length);
    length_ += length;
    return *this;
  }
  Line& number(std::int64_t value, int base = 10) {
    const auto [end, error] = std::to_chars(text_ + length_, text_ + sizeof text_, value, base);
    if (error == std::errc{}) length_ = static_cast<std::size_t>(end - text_);
    return *this;
  }
  [[nodiscard]] std::string_view text() const { return {text_, length_}; }

 private:
  char text_[256];
  std::size_t length_ = 0;
};

void write_text(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void write_crash(int file, int signal, const siginfo_t& info) {
  if (const std::string* const head = report_head.load(std::memory_order_acquire)) write_text(file, *head);
  char thread[16] = "";
  prctl(PR_GET_NAME, thread, 0, 0, 0);
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  Line line;
  line << "time: ";
  line.number(now.tv_sec) << " seconds since 1970\nsignal: ";
  line.number(signal);
  const auto* const found = std::ranges::find(kReported, signal);
  line << " " << kNames[found - std::begin(kReported)];
  if (info.si_code > 0) {
    line << " at address 0x";
    line.number(reinterpret_cast<std::intptr_t>(info.si_addr), 16);
  } else {
    line << " sent by process ";
    line.number(info.si_pid);
  }
  line << "\nthread: ";
  line.number(gettid()) << " " << std::string_view(thread) << "\nstack:\n";
  write_text(file, line.text());
  void* frames[kDeepest];
  backtrace_symbols_fd(frames, backtrace(frames, kDeepest), file);
  const std::string* const counters = report_counters.load(std::memory_order_acquire);
  write_text(file, "counters:\n");
  if (counters != nullptr) write_text(file, *counters);
  write_text(file, "end\n");
}

void on_crash(int signal, siginfo_t* info, void* /*context*/) {
  if (report_begun.exchange(true)) {
    for (;;) pause();  // until the thread that crashed first has written its report, and ends all
  }
  struct sigaction by_default{};
  by_default.sa_handler = SIG_DFL;
  sigaction(SIGALRM, &by_default, nullptr);
  alarm(kPatience_s);
  write_crash(report_file.load(std::memory_order_relaxed), signal, *info);
  for (const int crash : kReported) sigaction(crash, &by_default, nullptr);
  alarm(0);
  // An instruction that faulted does so again; what was sent has to be sent again.
  if (info->si_code <= 0) raise(signal);
}

}  // namespace

std::string build_id() {
  std::string id;
  const auto read = [](dl_phdr_info* object, std::size_t /*size*/, void* found) {
    for (int i = 0; i < object->dlpi_phnum; ++i) {
      const ElfW(Phdr)& part = object->dlpi_phdr[i];
      if (part.p_type != PT_NOTE) continue;
      const auto* at = reinterpret_cast<const char*>(object->dlpi_addr + part.p_vaddr);
      const char* const end = at + part.p_memsz;
      while (at + sizeof(ElfW(Nhdr)) <= end) {
        ElfW(Nhdr) note;
        std::memcpy(&note, at, sizeof note);
        const char* const name = at + sizeof note;
        const auto* const value = reinterpret_cast<const std::uint8_t*>(name + (note.n_namesz + 3) / 4 * 4);
        if (note.n_type == NT_GNU_BUILD_ID && std::string_view(name, note.n_namesz) == std::string_view("GNU", 4)) {
          *static_cast<std::string*>(found) = fmt::format("{:02x}", fmt::join(value, value + note.n_descsz, ""));
        }
        at = reinterpret_cast<const char*>(value) + (note.n_descsz + 3) / 4 * 4;
      }
    }
    return 1;  // the first object is the program
  };
  dl_iterate_phdr(read, &id);
  return id;
}

Result<std::unique_ptr<CrashReport>> CrashReport::open(const std::string& path, std::string head) {
  const auto refuse = [&](const char* why) {
    return environment_error(fmt::format("cannot keep {} for a crash report", path), why,
                             "name a file that this user may write");
  };
  // A file is opened, found to be of an earlier crash and moved away, and opened anew.
  for (;;) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (file < 0) return refuse(std::strerror(errno));
    struct stat facts{};
    if (flock(file, LOCK_EX | LOCK_NB) != 0 || fstat(file, &facts) != 0) {
      close(file);
      return usage_error(fmt::format("cannot keep {} for a crash report", path), "another process keeps it for its own",
                         "name one for each process");
    }
    if (facts.st_nlink == 0) {  // its process has just ended, and took it away
      close(file);
      continue;
    }
    if (!S_ISREG(facts.st_mode)) {
      close(file);
      return refuse("it is no ordinary file");
    }
    if (facts.st_size == 0) return std::unique_ptr<CrashReport>(new CrashReport(path, file, std::move(head)));
    const bool moved = std::rename(path.c_str(), (path + ".1").c_str()) == 0;
    const int error = errno;
    close(file);
    if (!moved) return refuse(std::strerror(error));
  }
}

CrashReport::CrashReport(std::string path, int file, std::string head)
    : path_(std::move(path)), file_(file), head_(std::move(head)) {
  void* frame = nullptr;
  backtrace(&frame, 1);  // the first call loads a library
  report_file = file_;
  report_head = &head_;
  report_counters = nullptr;
  report_begun = false;
  struct sigaction action{};
  action.sa_sigaction = on_crash;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < std::size(kReported); ++i) sigaction(kReported[i], &action, &before_report[i]);
}

CrashReport::~CrashReport() {
  for (std::size_t i = 0; i < std::size(kReported); ++i) sigaction(kReported[i], &before_report[i], nullptr);
  report_head = nullptr;
  report_counters = nullptr;
  unlink(path_.c_str());
  close(file_);
}

void CrashReport::note_counters(std::string text) {
  counters_[next_] = std::move(text);
  report_counters.store(&counters_[next_], std::memory_order_release);
  next_ = 1 - next_;
}

}  // namespace warpline::runtime
