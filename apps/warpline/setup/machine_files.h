// SPDX-License-Identifier: Apache-2.0
// Where set-up reads and writes: the machine's files, or those of a test.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "warpline/base/result.h"

namespace warpline::setup {

/// The files of a machine, below a root. What writes is virtual, so that a test can play the kernel behind sysfs.
class MachineFiles {
 public:
  /// Refers to the files below `root`.
  explicit MachineFiles(std::filesystem::path root = "/") : root_(std::move(root)) {}
  virtual ~MachineFiles() = default;
  MachineFiles(const MachineFiles&) = delete;
  MachineFiles& operator=(const MachineFiles&) = delete;

  /// Returns where `path`, an absolute one of the machine, really is.
  [[nodiscard]] std::filesystem::path at(const std::filesystem::path& path) const {
    return root_ / path.relative_path();
  }
  /// Returns all that a file holds; empty if it cannot be read.
  [[nodiscard]] std::string read(const std::filesystem::path& path) const;
  [[nodiscard]] bool exists(const std::filesystem::path& path) const;
  /// Returns the name of what a symbolic link leads to, such as a driver's; empty if there is no link.
  [[nodiscard]] std::string link_name(const std::filesystem::path& path) const;

  /// Returns true if the kernel has an IPv4 address on an interface, in whatever table its routes are.
  [[nodiscard]] virtual bool has_ipv4_address(const std::string& interface) const;

  /// Writes `text` into a file of sysfs, with one system call. Environment error: there is no such file, or the kernel
  /// refuses.
  [[nodiscard]] virtual Result<void> tell_kernel(const std::filesystem::path& path, std::string_view text);
  /// Makes a file, with its folders, or replaces it whole. Environment error: it cannot be written.
  [[nodiscard]] virtual Result<void> write_file(const std::filesystem::path& path, std::string_view text);
  /// Removes a file that may be gone already. Environment error: it cannot be removed.
  [[nodiscard]] virtual Result<void> remove_file(const std::filesystem::path& path);
  /// Gives a file to a user. Environment error: the kernel refuses.
  [[nodiscard]] virtual Result<void> give_to(const std::filesystem::path& path, unsigned user);
  /// Returns the user that a file is of. Environment error: there is no such file.
  [[nodiscard]] virtual Result<unsigned> owner(const std::filesystem::path& path) const;

 private:
  std::filesystem::path root_;
};

}  // namespace warpline::setup
