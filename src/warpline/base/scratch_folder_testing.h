// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace warpline {

/// For tests: the bytes of a little-endian pcap with microseconds (draft-ietf-opsawg-pcap).
inline std::string pcap_bytes(const std::vector<std::string>& frames, std::uint32_t link_type = 1) {
  std::string bytes;
  const auto word = [&bytes](std::uint32_t value) {
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    bytes.append(raw, sizeof raw);
  };
  word(0xa1b2c3d4);
  word(2 | 4U << 16);
  word(0);
  word(0);
  word(65535);
  word(link_type);
  std::uint32_t second = 1;
  for (const std::string& frame : frames) {
    word(second++);
    word(0);
    word(static_cast<std::uint32_t>(frame.size()));
    word(static_cast<std::uint32_t>(frame.size()));
    bytes += frame;
  }
  return bytes;
}

/// For tests: a folder of its own that goes with it.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "warpline-test-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() { std::filesystem::remove_all(path_); }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Writes a file, with the folders it is in; its whole path.
  std::string write(const std::string& name, const std::string& bytes) {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace warpline
