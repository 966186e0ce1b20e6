// SPDX-License-Identifier: Apache-2.0
#include "warpline/base/files/read_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace warpline {

FileText read_file(const std::filesystem::path& path, std::size_t most) {
  constexpr std::size_t kPiece = 256 * 1024;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {.problem = errno};
  FileText read;
  std::size_t have = 0;
  while (have < most) {
    read.text.resize(have + std::min(std::max(kPiece, have), most - have));
    const ssize_t count = ::read(file, read.text.data() + have, read.text.size() - have);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) read.problem = errno;
    if (count <= 0) break;
    have += static_cast<std::size_t>(count);
  }
  ::close(file);
  read.text.resize(read.problem == 0 ? have : 0);
  return read;
}

}  // namespace warpline
