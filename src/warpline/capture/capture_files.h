// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "warpline/base/result.h"

namespace warpline::capture {

/// CaptureFiles are the files of a capture, which take turns so that they stay below a limit together: FILE.pcapng,
/// FILE.1.pcapng, ... Each is complete in itself. When the last is full the first is begun again. One thread makes all
/// calls. What cannot be written is left out; a file never ends inside a block, even if the process is killed, as long
/// as no block is in two pieces (kPiece).
class CaptureFiles {
 public:
  static constexpr std::size_t kFiles = 4;
  /// What a process that is killed still writes whole: the kernel looks for fatal signals between two pages.
  static constexpr std::size_t kPiece = 4096;

  /// Makes the first file, which replaces one that is there, and takes away the others of an earlier capture. `head` is
  /// what each begins with, `limit` at least kFiles * (head + a packet). Usage error: there is no such folder, or the
  /// name is of something else than a file. Environment error: it cannot be written.
  [[nodiscard]] static Result<CaptureFiles> open(const std::string& path, std::uint64_t limit,
                                                 std::vector<std::uint8_t> head);
  CaptureFiles(CaptureFiles&& other) noexcept;
  CaptureFiles& operator=(CaptureFiles&&) = delete;
  ~CaptureFiles();

  /// Returns how many bytes the file has, or will have once it is begun.
  [[nodiscard]] std::uint64_t size() const;
  /// Returns how many bytes of blocks the file takes before the next one is due.
  [[nodiscard]] std::uint64_t room() const;
  /// Turns to the next file. Returns how many packets were in the one that it replaces.
  std::uint64_t turn();
  /// Appends blocks of packets, no more than room(); `ends` says where in `blocks` each ends. Returns how many were
  /// written, the first ones.
  [[nodiscard]] std::size_t append(std::span<const std::uint8_t> blocks, std::span<const std::size_t> ends);

  /// Returns the paths of the files that there are, oldest first.
  [[nodiscard]] std::vector<std::string> paths() const;
  /// Returns why something could not be written last; empty: nothing has failed.
  [[nodiscard]] const std::string& failure() const { return failure_; }

 private:
  CaptureFiles(std::string path, std::uint64_t part, std::vector<std::uint8_t> head);

  [[nodiscard]] std::string path_of(std::size_t index) const;
  /// Opens the current file, empty. False, with errno, if that cannot be.
  [[nodiscard]] bool open_file();
  /// Writes behind what is there. Returns how many bytes it took.
  std::size_t write_behind(std::span<const std::uint8_t> bytes);
  /// Writes the head if the file has none yet.
  [[nodiscard]] bool begin_file();
  void cut_to(std::uint64_t size);

  std::string path_;
  std::uint64_t part_;  ///< bytes of one file at most
  std::vector<std::uint8_t> head_;
  int file_ = -1;
  std::uint64_t size_ = 0;   ///< bytes of the current file
  std::uint64_t turns_ = 0;  ///< the current file is turns_ % kFiles
  std::array<std::uint64_t, kFiles> packets_{};
  std::string failure_;
};

}  // namespace warpline::capture
