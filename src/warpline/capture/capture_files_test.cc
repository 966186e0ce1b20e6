// SPDX-License-Identifier: Apache-2.0
#include "warpline/capture/capture_files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "warpline/base/property_testing.h"
#include "warpline/base/scratch_folder_testing.h"

namespace warpline::capture {
namespace {

namespace fs = std::filesystem;

const std::vector<std::uint8_t> kHead = {'h', 'e', 'a', 'd'};
constexpr std::uint64_t kLimit = 4 * 20;  // bytes: four files of a head and 16

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::size_t append(CaptureFiles& files, const std::vector<std::string>& blocks) {
  std::vector<std::uint8_t> bytes;
  std::vector<std::size_t> ends;
  for (const std::string& block : blocks) {
    bytes.insert(bytes.end(), block.begin(), block.end());
    ends.push_back(bytes.size());
  }
  return files.append(bytes, ends);
}

/// While it lives, no file of the process grows beyond so many bytes: a full disk, for the test.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, SIG_DFL);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
};

TEST(CaptureFiles, TheFirstIsThereAtOnceForItsOwnerAlone) {
  ScratchFolder folder;
  const fs::path path = folder.path() / "a.pcapng";
  folder.write("a.1.pcapng", "of an earlier capture");
  auto files = CaptureFiles::open(path, kLimit, kHead);
  ASSERT_TRUE(files);
  EXPECT_EQ(content(path), "head");
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_FALSE(fs::exists(folder.path() / "a.1.pcapng"));
  EXPECT_EQ(append(*files, {"one", "two"}), 2U);
  EXPECT_EQ(append(*files, {"three"}), 1U);
  EXPECT_EQ(content(path), "headonetwothree");
  EXPECT_EQ(files->room(), 20U - 15U);
  EXPECT_EQ(files->paths(), std::vector<std::string>{path});
}

TEST(CaptureFiles, OneThatIsThereIsReplaced) {
  ScratchFolder folder;
  const std::string path = folder.write("a.pcapng", "of an earlier capture, and longer");
  ASSERT_TRUE(CaptureFiles::open(path, kLimit, kHead));
  EXPECT_EQ(content(path), "head");
}

TEST(CaptureFiles, TheyTakeTurns) {
  ScratchFolder folder;
  const fs::path& path = folder.path();
  auto files = CaptureFiles::open(path / "a.pcapng", kLimit, kHead);
  ASSERT_TRUE(files);
  for (const char* const block : {"0", "1", "2", "3"}) {
    EXPECT_EQ(append(*files, {block, block}), 2U);
    if (*block != '3') {
      EXPECT_EQ(files->turn(), 0U);
    }
  }
  EXPECT_EQ(files->paths(), (std::vector<std::string>{path / "a.pcapng", path / "a.1.pcapng", path / "a.2.pcapng",
                                                      path / "a.3.pcapng"}));
  EXPECT_EQ(files->turn(), 2U);
  EXPECT_EQ(files->turn(), 2U);
  EXPECT_EQ(append(*files, {"5"}), 1U);
  EXPECT_EQ(content(path / "a.pcapng"), "");  // nothing came before the next turn
  EXPECT_EQ(content(path / "a.1.pcapng"), "head5");
  EXPECT_EQ(content(path / "a.2.pcapng"), "head22");
  EXPECT_EQ(files->paths().front(), path / "a.2.pcapng");
  EXPECT_EQ(files->paths().back(), path / "a.1.pcapng");
}

TEST(CaptureFiles, AFullDiskLeavesWholeBlocksAndIsTriedAgain) {
  ScratchFolder folder;
  const fs::path path = folder.path() / "a.pcapng";
  auto files = CaptureFiles::open(path, 4000, kHead);
  ASSERT_TRUE(files);
  {
    const FileSizeLimit full(11);
    EXPECT_EQ(append(*files, {"12345", "67890"}), 1U);
    EXPECT_EQ(content(path), "head12345");
    EXPECT_EQ(append(*files, {"67890"}), 0U);
    EXPECT_EQ(content(path), "head12345");
    EXPECT_EQ(files->failure(), "File too large");
  }
  EXPECT_EQ(append(*files, {"67890"}), 1U);
  EXPECT_EQ(content(path), "head1234567890");
}

TEST(CaptureFiles, AFullDiskLeavesNoHeadInPieces) {
  ScratchFolder folder;
  auto files = CaptureFiles::open(folder.path() / "a.pcapng", 4000, kHead);
  ASSERT_TRUE(files);
  {
    const FileSizeLimit full(2);
    files->turn();
    EXPECT_EQ(append(*files, {"1"}), 0U);
    EXPECT_EQ(content(folder.path() / "a.1.pcapng"), "");
  }
  EXPECT_EQ(append(*files, {"1"}), 1U);
  EXPECT_EQ(content(folder.path() / "a.1.pcapng"), "head1");
}

TEST(CaptureFiles, AFileThatCannotBeOpenedIsTriedAgain) {
  ScratchFolder folder;
  auto files = CaptureFiles::open(folder.path() / "a.pcapng", kLimit, kHead);
  ASSERT_TRUE(files);
  fs::create_directory(folder.path() / "a.1.pcapng");
  files->turn();
  EXPECT_EQ(append(*files, {"1"}), 0U);
  EXPECT_EQ(files->failure(), "Is a directory");
  fs::remove(folder.path() / "a.1.pcapng");
  EXPECT_EQ(append(*files, {"1"}), 1U);
  EXPECT_EQ(content(folder.path() / "a.1.pcapng"), "head1");
}

TEST(CaptureFiles, WhatIsNoFileIsRefused) {
  ScratchFolder folder;
  const std::string target = folder.write("target", "kept");
  fs::create_symlink(target, folder.path() / "link");
  ASSERT_EQ(mkfifo((folder.path() / "pipe").c_str(), 0600), 0);
  for (const fs::path& path : {folder.path(), folder.path() / "no" / "a.pcapng", folder.path() / "link",
                               folder.path() / "pipe", fs::path("/dev/null")}) {
    const auto files = CaptureFiles::open(path, kLimit, kHead);
    ASSERT_FALSE(files) << path;
    EXPECT_EQ(files.error().kind, ErrorKind::usage) << path;
    EXPECT_NE(files.error().what.find(path), std::string::npos);
  }
  EXPECT_EQ(content(target), "kept");
}

TEST(CaptureFiles, ADiskThatIsFullFromTheBeginningIsAnError) {
  ScratchFolder folder;
  const FileSizeLimit full(2);
  const auto files = CaptureFiles::open(folder.path() / "a.pcapng", kLimit, kHead);
  ASSERT_FALSE(files);
  EXPECT_EQ(files.error().kind, ErrorKind::environment);
}

WARPLINE_PROPERTY(CaptureFiles, StayBelowTheirLimitAndCountWhatIsGone, (const std::vector<std::uint8_t>& lengths)) {
  ScratchFolder folder;
  auto files = CaptureFiles::open(folder.path() / "a.pcapng", kLimit, kHead);
  RC_ASSERT(files.ok());
  std::size_t gone = 0;
  for (const std::uint8_t length : lengths) {
    const std::string block(1 + length % 16, 'x');
    if (block.size() > files->room()) gone += files->turn();
    RC_ASSERT(append(*files, {block}) == 1U);
    std::uint64_t bytes = 0;
    for (const std::string& path : files->paths()) bytes += fs::file_size(path);
    RC_ASSERT(bytes <= kLimit);
  }
  RC_ASSERT(gone <= lengths.size());
  std::size_t left = 0;
  for (std::size_t turn = 0; turn < CaptureFiles::kFiles; ++turn) left += files->turn();
  RC_ASSERT(gone + left == lengths.size());
}

}  // namespace
}  // namespace warpline::capture
