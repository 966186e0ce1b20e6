// SPDX-License-Identifier: Apache-2.0
#include "warpline/protection/key_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

namespace warpline::protection {
namespace {

constexpr std::size_t kDigits = 2 * sizeof(AesKey);
constexpr std::size_t kMostBytes = 4096;

std::optional<std::uint8_t> digit_of(char c) {
  if (c >= '0' && c <= '9') return static_cast<std::uint8_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<std::uint8_t>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<std::uint8_t>(c - 'A' + 10);
  return std::nullopt;
}

std::string_view without_comment(std::string_view line) {
  line = line.substr(0, line.find('#'));
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t begin = line.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_last_not_of(kBlanks) - begin + 1);
}

std::string recipe(const std::string& path) {
  return fmt::format("make one: (umask 077; od -An -N16 -tx1 /dev/urandom | tr -d ' ' > {})", path);
}

Error bad_key(const std::string& path, std::string why) {
  return usage_error(fmt::format("cannot use the key in {}", path), std::move(why), recipe(path));
}

Error no_file(const std::string& path, int error) {
  return environment_error(fmt::format("cannot read the key file {}", path), std::strerror(error),
                           error == ENOENT ? recipe(path) : std::string("run as its owner, or name another file"));
}

/// Closes when it goes, and leaves no copy of what was read.
struct KeyFile {
  explicit KeyFile(const std::string& path) : file(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  KeyFile(const KeyFile&) = delete;
  KeyFile& operator=(const KeyFile&) = delete;
  ~KeyFile() {
    if (file >= 0) close(file);
    OPENSSL_cleanse(bytes, sizeof bytes);
  }

  int file;
  char bytes[kMostBytes + 1];
};

}  // namespace

Result<AesKey> parse_key(std::string_view text, const std::string& path) {
  std::optional<AesKey> key;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = without_comment(text.substr(begin, end - begin));
    begin = end + 1;
    ++number;
    if (line.empty()) continue;
    if (key) return bad_key(path, fmt::format("line {} holds a second key", number));
    AesKey bytes{};
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::optional<std::uint8_t> digit = digit_of(line[i]);
      if (!digit) {
        return bad_key(path, fmt::format("character {} of line {} is no hexadecimal digit", i + 1, number));
      }
      if (i < kDigits) bytes[i / 2] = static_cast<std::uint8_t>(bytes[i / 2] << 4 | *digit);
    }
    if (line.size() != kDigits) {
      return bad_key(path, fmt::format("line {} has {} digits, a key has {}", number, line.size(), kDigits));
    }
    key = bytes;
  }
  if (!key) return bad_key(path, "there is none in it");
  return *key;
}

Result<AesKey> read_key_file(const std::string& path) {
  KeyFile key(path);
  struct stat facts{};
  if (key.file < 0 || fstat(key.file, &facts) != 0) return no_file(path, errno);
  if ((facts.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return environment_error(fmt::format("cannot use the key file {}", path),
                             fmt::format("others than its owner have access to it (mode {:03o})", facts.st_mode & 0777),
                             fmt::format("chmod 600 {}, and if they may have read it, make a new key", path));
  }
  std::size_t length = 0;
  while (length < sizeof key.bytes) {
    const ssize_t got = read(key.file, key.bytes + length, sizeof key.bytes - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return no_file(path, errno);
    if (got == 0) break;
    length += static_cast<std::size_t>(got);
  }
  if (length > kMostBytes) return bad_key(path, fmt::format("it is longer than {} bytes", kMostBytes));
  return parse_key({key.bytes, length}, path);
}

}  // namespace warpline::protection
