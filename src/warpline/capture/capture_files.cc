// SPDX-License-Identifier: Apache-2.0
#include "warpline/capture/capture_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace warpline::capture {

CaptureFiles::CaptureFiles(std::string path, std::uint64_t part, std::vector<std::uint8_t> head)
    : path_(std::move(path)), part_(part), head_(std::move(head)) {}

CaptureFiles::CaptureFiles(CaptureFiles&& other) noexcept
    : path_(std::move(other.path_)),
      part_(other.part_),
      head_(std::move(other.head_)),
      file_(std::exchange(other.file_, -1)),
      size_(other.size_),
      turns_(other.turns_),
      packets_(other.packets_),
      failure_(std::move(other.failure_)) {}

CaptureFiles::~CaptureFiles() {
  if (file_ >= 0) close(file_);
}

Result<CaptureFiles> CaptureFiles::open(const std::string& path, std::uint64_t limit, std::vector<std::uint8_t> head) {
  CaptureFiles files(path, limit / kFiles, std::move(head));
  const auto refuse = [&](const std::string& why, bool misnamed) {
    const std::string what = fmt::format("cannot capture to {}", path);
    if (misnamed) return usage_error(what, why, "name a file in a folder that is there");
    return environment_error(what, why, "name a file that this user may write, where there is space");
  };
  if (!files.open_file()) {
    const bool misnamed = errno == ENOENT || errno == ENOTDIR || errno == EISDIR || errno == ELOOP || errno == ENXIO;
    return refuse(std::strerror(errno), misnamed);
  }
  struct stat facts{};
  if (fstat(files.file_, &facts) != 0 || !S_ISREG(facts.st_mode)) return refuse("it is no ordinary file", true);
  if (!files.begin_file()) return refuse(files.failure_, false);
  for (std::size_t i = 1; i < kFiles; ++i) unlink(files.path_of(i).c_str());
  return files;
}

std::string CaptureFiles::path_of(std::size_t index) const {
  if (index == 0) return path_;
  std::filesystem::path path = path_;
  const std::string extension = path.extension();
  return path.replace_extension(fmt::format(".{}{}", index, extension));
}

bool CaptureFiles::open_file() {
  // Neither a link that somebody put there is followed, nor is a pipe waited for.
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  if (file_ >= 0) close(file_);
  size_ = 0;
  file_ = ::open(path_of(turns_ % kFiles).c_str(), kFlags, 0600);
  if (file_ < 0) failure_ = std::strerror(errno);
  return file_ >= 0;
}

std::uint64_t CaptureFiles::size() const { return std::max<std::uint64_t>(size_, head_.size()); }

std::uint64_t CaptureFiles::room() const { return part_ - size(); }

std::uint64_t CaptureFiles::turn() {
  ++turns_;
  // One that cannot be opened now is tried again when something is to be written.
  if (!open_file()) size_ = 0;
  return std::exchange(packets_[turns_ % kFiles], 0);
}

std::size_t CaptureFiles::write_behind(std::span<const std::uint8_t> bytes) {
  std::size_t written = 0;
  while (written != bytes.size()) {
    const std::uint64_t at = size_ + written;
    const std::size_t piece = std::min<std::uint64_t>(bytes.size() - written, kPiece - at % kPiece);
    const ssize_t count = pwrite(file_, bytes.data() + written, piece, static_cast<off_t>(at));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      failure_ = std::strerror(count < 0 ? errno : ENOSPC);
      break;
    }
    written += static_cast<std::size_t>(count);
  }
  return written;
}

bool CaptureFiles::begin_file() {
  if (file_ < 0 && !open_file()) return false;
  if (size_ != 0) return true;
  if (write_behind(head_) != head_.size()) {
    cut_to(0);
    return false;
  }
  size_ = head_.size();
  return true;
}

void CaptureFiles::cut_to(std::uint64_t size) {
  if (ftruncate(file_, static_cast<off_t>(size)) != 0) failure_ = std::strerror(errno);
}

std::size_t CaptureFiles::append(std::span<const std::uint8_t> blocks, std::span<const std::size_t> ends) {
  if (!begin_file()) return 0;
  const std::size_t written = write_behind(blocks);
  const auto whole = static_cast<std::size_t>(std::ranges::upper_bound(ends, written) - ends.begin());
  const std::size_t kept = whole == 0 ? 0 : ends[whole - 1];
  size_ += kept;
  if (written != kept) cut_to(size_);
  packets_[turns_ % kFiles] += whole;
  return whole;
}

std::vector<std::string> CaptureFiles::paths() const {
  std::vector<std::string> paths;
  for (std::uint64_t turn = turns_ - std::min<std::uint64_t>(turns_, kFiles - 1); turn <= turns_; ++turn) {
    paths.push_back(path_of(turn % kFiles));
  }
  return paths;
}

}  // namespace warpline::capture
