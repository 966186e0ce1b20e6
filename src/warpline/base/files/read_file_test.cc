// SPDX-License-Identifier: Apache-2.0
#include "warpline/base/files/read_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

namespace warpline {
namespace {

TEST(ReadFile, ReadsAllOfAFileOrTheBeginning) {
  const std::string path = testing::TempDir() + "read_file" + std::to_string(getpid());
  const std::string text = std::string(700'000, 'a') + "end";
  std::ofstream(path) << text;
  EXPECT_EQ(read_file(path).text, text);
  EXPECT_EQ(read_file(path).problem, 0);
  EXPECT_EQ(read_file(path, 3).text, "aaa");
  std::filesystem::remove(path);
  EXPECT_FALSE(read_file("/proc/self/status").text.empty()) << "a file whose size is 0 for stat(2)";
}

/// open(2) fails, read(2) fails at a folder, and read(2) fails at address 0 of a process (proc(5)).
TEST(ReadFile, SaysWhatFails) {
  EXPECT_EQ(read_file("/absent/file").problem, ENOENT);
  EXPECT_EQ(read_file("/").problem, EISDIR);
  EXPECT_EQ(read_file("/proc/self/mem").problem, EIO);
  EXPECT_EQ(read_file("/proc/self/mem").text, "");
}

}  // namespace
}  // namespace warpline
