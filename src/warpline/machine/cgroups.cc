// SPDX-License-Identifier: Apache-2.0
#include "warpline/machine/cgroups.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <set>
#include <sstream>

#include "warpline/base/files/read_file.h"

namespace warpline::machine {
namespace {

namespace fs = std::filesystem;

const CgroupFile kMemoryLimit{"memory.limit_in_bytes", "memory.max"};
const CgroupFile kMemoryUsage{"memory.usage_in_bytes", "memory.current"};

/// A folder of a hierarchy in which this process may have a group.
struct Hierarchy {
  fs::path top;
  fs::path path;  ///< of the process's group, below `top`
  bool is_version_2;
};

/// Returns the hierarchies that have the controller, or may have it (cgroups(7), "/proc/[pid]/cgroup").
std::vector<Hierarchy> hierarchies(const std::string& controller, const fs::path& root) {
  const fs::path cgroups = root / "sys/fs/cgroup";
  std::vector<Hierarchy> found;
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path path = fs::path(line.substr(second + 1)).relative_path();
    if (controllers.empty()) {
      found.push_back({cgroups, path, true});
      found.push_back({cgroups / "unified", path, true});
    } else if (("," + controllers + ",").find("," + controller + ",") != std::string::npos) {
      found.push_back({cgroups / controllers, path, false});
      if (controllers != controller) found.push_back({cgroups / controller, path, false});
    }
  }
  return found;
}

}  // namespace

std::vector<CgroupLimit> cgroup_limits(const std::string& controller, const CgroupFile& limit, const CgroupFile& usage,
                                       const fs::path& root) {
  std::vector<CgroupLimit> limits;
  for (const Hierarchy& hierarchy : hierarchies(controller, root)) {
    // A container may see its own group at the top, and the host's path for it in /proc.
    fs::path folder = hierarchy.top;
    for (auto next = hierarchy.path.begin();; ++next) {
      const std::string text = first_line(folder / (hierarchy.is_version_2 ? limit.version_2 : limit.version_1));
      if (!text.empty()) {
        const fs::path used = folder / (hierarchy.is_version_2 ? usage.version_2 : usage.version_1);
        limits.push_back({text, number_in_file(used), hierarchy.is_version_2});
      }
      if (next == hierarchy.path.end()) break;
      folder /= *next;
    }
  }
  return limits;
}

std::optional<std::uint64_t> cgroup_bytes_left(const std::string& controller, const CgroupFile& limit,
                                               const CgroupFile& usage, const fs::path& root) {
  constexpr std::uint64_t kUnlimited = std::uint64_t{1} << 62;  // version 1 has the largest number of whole pages
  std::optional<std::uint64_t> left;
  for (const CgroupLimit& each : cgroup_limits(controller, limit, usage, root)) {
    std::uint64_t most = 0;
    if (!(std::istringstream(each.limit) >> most) || most >= kUnlimited) continue;
    const std::uint64_t here = most - std::min(most, each.used);
    left = std::min(left.value_or(here), here);
  }
  return left;
}

std::uint64_t obtainable_memory(const fs::path& root) {
  std::uint64_t bytes = UINT64_MAX;
  std::uint64_t swap = 0;
  std::ifstream file(root / "proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    unsigned long kibibytes = 0;
    if (std::sscanf(line.c_str(), "MemAvailable: %lu kB", &kibibytes) == 1) bytes = std::uint64_t{kibibytes} << 10;
    if (std::sscanf(line.c_str(), "SwapFree: %lu kB", &kibibytes) == 1) swap = std::uint64_t{kibibytes} << 10;
  }
  if (bytes != UINT64_MAX) bytes += swap;
  for (const CgroupLimit& each : cgroup_limits("memory", kMemoryLimit, kMemoryUsage, root)) {
    std::uint64_t most = 0;
    if (std::istringstream(each.limit) >> most) bytes = std::min(bytes, most);
  }
  return bytes;
}

std::optional<double> cgroup_processors(const fs::path& root) {
  std::optional<double> allowed;
  const CgroupFile quota{"cpu.cfs_quota_us", "cpu.max"};
  const CgroupFile period{"cpu.cfs_period_us", "cpu.max"};
  for (const CgroupLimit& each : cgroup_limits("cpu", quota, period, root)) {
    double most = 0;
    double of = static_cast<double>(each.used);
    std::istringstream text(each.limit);
    if (!(text >> most) || most <= 0) continue;  // "max", or -1 in version 1
    if (each.is_version_2) text >> of;
    if (of > 0) allowed = std::min(allowed.value_or(most / of), most / of);
  }
  return allowed;
}

}  // namespace warpline::machine
