// SPDX-License-Identifier: Apache-2.0
#include "warpline/metrics/snapshot.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>

namespace warpline::metrics {
namespace {

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

/// Bytes that the process has in memory; 0 if the kernel does not tell.
std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t all = 0;
  std::uint64_t resident = 0;
  file >> all >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

std::uint64_t open_files() {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/fd"), closedir);
  if (!folder) return 0;
  std::uint64_t files = 0;
  while (const dirent* const entry = readdir(folder.get())) files += entry->d_name[0] != '.' ? 1 : 0;
  return files - 1;  // that of the folder itself
}

/// Seconds since 1970 when the program was loaded, which is when this was initialised.
const double started_at = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();

}  // namespace

Family& Snapshot::family(std::string_view name, FamilyKind kind, std::string_view unit, std::string_view help) {
  const auto found = std::ranges::find(families_, name, &Family::name);
  if (found != families_.end()) return *found;
  return families_.emplace_back(Family{std::string(name), kind, unit, help, {}, {}});
}

void Snapshot::summary(std::string_view name, std::string_view help, const LatencyTotals& times, Labels labels) {
  if (times.count == 0) return;
  family(name, FamilyKind::summary, "seconds", help).measured.push_back({std::move(labels), times});
}

void add_process(Snapshot& snapshot, Labels build) {
  snapshot.family("warpline_build", FamilyKind::info, "", "What runs").with(std::uint64_t{1}, std::move(build));
  // As Prometheus' own libraries name them.
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  snapshot.counter("process_cpu_seconds", "seconds", "Processor time, in user and system mode")
      .with(seconds(usage.ru_utime) + seconds(usage.ru_stime));
  snapshot.gauge("process_resident_memory_bytes", "bytes", "Memory that is in use").with(resident_bytes());
  snapshot.gauge("process_open_fds", "", "File descriptors that are open").with(open_files());
  snapshot.gauge("process_start_time_seconds", "seconds", "When the process started, since 1970").with(started_at);
}

}  // namespace warpline::metrics
