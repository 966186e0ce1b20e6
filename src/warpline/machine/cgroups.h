// SPDX-License-Identifier: Apache-2.0
// Limits that control groups set for this process: those of a container, a pod or a service (cgroups(7)).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace warpline::machine {

/// The files of one controller in version 1 and 2 of control groups, such as "memory.limit_in_bytes" and "memory.max".
struct CgroupFile {
  std::string version_1;
  std::string version_2;
};

/// A control group of this process that has a limit, or one of that group's ancestors.
struct CgroupLimit {
  std::string limit;       ///< the text of the limit's file, one line; version 2 writes "max" for none
  std::uint64_t used = 0;  ///< the number in the file of the usage
  bool is_version_2 = true;
};

/// Returns what the file `limit` of `controller` says in each control group of this process and in its ancestors, with
/// the number in `usage`, from proc/self/cgroup and sys/fs/cgroup below `root`. Groups without such a file are left
/// out.
[[nodiscard]] std::vector<CgroupLimit> cgroup_limits(const std::string& controller, const CgroupFile& limit,
                                                     const CgroupFile& usage, const std::filesystem::path& root = "/");

/// Returns how much of a resource that is counted in bytes the control groups still allow; nullopt: there is no limit.
[[nodiscard]] std::optional<std::uint64_t> cgroup_bytes_left(const std::string& controller, const CgroupFile& limit,
                                                             const CgroupFile& usage,
                                                             const std::filesystem::path& root = "/");

/// Returns the bytes that processes can fill before the system has no memory left: what it calls available, with swap
/// (proc_meminfo(5)), and at most the limit of each control group. Groups count caches that the kernel would drop as
/// used, so usage is not subtracted.
[[nodiscard]] std::uint64_t obtainable_memory(const std::filesystem::path& root = "/");

/// Returns the processors' time that the control groups allow per second of time, in processors; nullopt: no limit.
[[nodiscard]] std::optional<double> cgroup_processors(const std::filesystem::path& root = "/");

}  // namespace warpline::machine
