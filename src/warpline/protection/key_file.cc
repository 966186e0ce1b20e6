// SPDX-License-Identifier: Apache-2.0
#include "warpline/protection/key_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "warpline/base/secrets/draw_secret.h"

namespace warpline::protection {
namespace {

constexpr std::size_t kDigits = 2 * sizeof(AesKey);
constexpr std::size_t kMostBytes = 1U << 20;

std::optional<std::uint8_t> digit_of(char c) {
  if (c >= '0' && c <= '9') return static_cast<std::uint8_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<std::uint8_t>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<std::uint8_t>(c - 'A' + 10);
  return std::nullopt;
}

constexpr std::string_view kBlanks = " \t\r";

/// Without comment and blanks around.
std::string_view trimmed(std::string_view line) {
  line = line.substr(0, line.find('#'));
  const std::size_t begin = line.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_last_not_of(kBlanks) - begin + 1);
}

/// Fills `key` in, or says what is wrong with the line.
std::optional<std::string> parse_line(std::string_view line, GivenKey& key) {
  std::string_view digits = line;
  if (const std::size_t blank = line.find_first_of(kBlanks); blank != std::string_view::npos) {
    if (!is_key_name(line.substr(0, blank))) {
      return "begins with no name: that is 1 to 32 letters, digits, '.', '_' or '-', and no key";
    }
    key.name = line.substr(0, blank);
    digits = line.substr(line.find_first_not_of(kBlanks, blank));
  }
  const auto at = static_cast<std::size_t>(digits.data() - line.data());
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const std::optional<std::uint8_t> digit = digit_of(digits[i]);
    if (!digit) return fmt::format("has no hexadecimal digit at character {}", at + i + 1);
    if (i < kDigits) key.secret[i / 2] = static_cast<std::uint8_t>(key.secret[i / 2] << 4 | *digit);
  }
  if (digits.size() == kDigits) return std::nullopt;
  return fmt::format("has {} digits, a key has {}", digits.size(), kDigits);
}

std::string recipe(const std::string& path) { return fmt::format("make one: warpline message key new {}", path); }

Error bad_key(const std::string& path, std::string why) {
  return usage_error(fmt::format("cannot use the key in {}", path), std::move(why), recipe(path));
}

Error no_file(const std::string& path, int error) {
  return environment_error(fmt::format("cannot read the key file {}", path), std::strerror(error),
                           error == ENOENT ? recipe(path) : std::string("run as its owner, or name another file"));
}

Error cannot_write(const std::string& path, int error) {
  return environment_error(fmt::format("cannot write the key file {}", path), std::strerror(error),
                           "name a file in a folder that is there and that you may write to");
}

/// Closes when it goes, and leaves no copy of what was read.
struct KeyFile {
  explicit KeyFile(const std::string& path, int flags = O_RDONLY)
      : file(open(path.c_str(), flags | O_CLOEXEC, S_IRUSR | S_IWUSR)) {}
  KeyFile(const KeyFile&) = delete;
  KeyFile& operator=(const KeyFile&) = delete;
  ~KeyFile() {
    if (file >= 0) close(file);
    OPENSSL_cleanse(bytes.data(), bytes.size());
  }

  int file;
  std::vector<char> bytes = std::vector<char>(kMostBytes + 1);
};

/// One line of a key file, with a new key. Wiped when it goes.
struct NewLine {
  NewLine() = default;
  NewLine(const NewLine&) = delete;
  NewLine& operator=(const NewLine&) = delete;
  ~NewLine() { OPENSSL_cleanse(text.data(), text.size()); }

  [[nodiscard]] Result<void> make(const std::string& name) {
    AesKey secret;
    WARPLINE_CHECK(draw_secret(secret));
    text.reserve(name.size() + 1 + kDigits + 2);  // it never grows
    text += name;
    if (!name.empty()) text += ' ';
    for (const std::uint8_t byte : secret) {
      for (const int digit : {byte >> 4, byte & 15}) text += "0123456789abcdef"[digit];
    }
    text += '\n';
    OPENSSL_cleanse(secret.data(), secret.size());
    return {};
  }

  std::string text;
};

Result<void> check_name(const std::string& name) {
  if (name.empty() || is_key_name(name)) return {};
  return usage_error(fmt::format("cannot call a key '{}'", name),
                     "a name is 1 to 32 letters, digits, '.', '_' or '-', and not like a key", "choose another");
}

/// All of it, and on the disk.
bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return fsync(file) == 0;
}

/// Two keys, by their places, that have the same secret or name, if they have one. Copies no secret.
template <typename T>
std::optional<std::pair<std::size_t, std::size_t>> find_twice(const std::vector<GivenKey>& keys, T GivenKey::* part) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (!std::is_same_v<T, std::string> || keys[i].*part != T{}) order.push_back(i);
  }
  const auto before = [&](std::size_t one, std::size_t other) {
    return std::tie(keys[one].*part, one) < std::tie(keys[other].*part, other);
  };
  std::ranges::sort(order, before);
  const auto same = [&](std::size_t one, std::size_t other) { return keys[one].*part == keys[other].*part; };
  const auto found = std::ranges::adjacent_find(order, same);
  if (found == order.end()) return std::nullopt;
  return std::pair(found[0], found[1]);
}

/// Leaves no copy of what was read.
struct GivenKeys {
  GivenKeys() = default;
  GivenKeys(const GivenKeys&) = delete;
  GivenKeys& operator=(const GivenKeys&) = delete;
  ~GivenKeys() {
    for (GivenKey& key : keys) OPENSSL_cleanse(key.secret.data(), key.secret.size());
  }

  std::vector<GivenKey> keys;
};

}  // namespace

Result<std::shared_ptr<const KeySet>> parse_keys(std::string_view text, const std::string& path) {
  GivenKeys given;
  given.keys.reserve(static_cast<std::size_t>(std::ranges::count(text, '\n')) + 1);
  std::vector<std::size_t> lines;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = trimmed(text.substr(begin, end - begin));
    begin = end + 1;
    ++number;
    if (line.empty()) continue;
    GivenKey key;
    if (const std::optional<std::string> why = parse_line(line, key)) {
      return bad_key(path, fmt::format("line {} {}", number, *why));
    }
    given.keys.push_back(std::move(key));
    lines.push_back(number);
  }
  if (const auto same = find_twice(given.keys, &GivenKey::secret)) {
    return bad_key(path,
                   fmt::format("line {} holds the key of line {} again", lines[same->second], lines[same->first]));
  }
  if (const auto same = find_twice(given.keys, &GivenKey::name)) {
    return bad_key(path, fmt::format("line {} has the name of line {}", lines[same->second], lines[same->first]));
  }
  if (given.keys.empty()) return bad_key(path, "there is none in it");
  return KeySet::make(given.keys);
}

Result<std::shared_ptr<const KeySet>> read_key_file(const std::string& path) {
  KeyFile key(path);
  struct stat facts{};
  if (key.file < 0 || fstat(key.file, &facts) != 0) return no_file(path, errno);
  if ((facts.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return environment_error(fmt::format("cannot use the key file {}", path),
                             fmt::format("others than its owner have access to it (mode {:03o})", facts.st_mode & 0777),
                             fmt::format("chmod 600 {}, and if they may have read it, make a new key", path));
  }
  std::size_t length = 0;
  while (length < key.bytes.size()) {
    const ssize_t got = read(key.file, key.bytes.data() + length, key.bytes.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return no_file(path, errno);
    if (got == 0) break;
    length += static_cast<std::size_t>(got);
  }
  if (length > kMostBytes) return bad_key(path, fmt::format("it is longer than {} bytes", kMostBytes));
  return parse_keys({key.bytes.data(), length}, path);
}

Result<void> create_key_file(const std::string& path, const std::string& name) {
  WARPLINE_CHECK(check_name(name));
  NewLine line;
  WARPLINE_CHECK(line.make(name));
  const KeyFile key(path, O_WRONLY | O_CREAT | O_EXCL);
  if (key.file < 0 && errno == EEXIST) {
    return usage_error(fmt::format("cannot make the key file {}", path), "it is there already",
                       "name another one, or add --append for one more key in it");
  }
  if (key.file < 0) return cannot_write(path, errno);
  if (write_all(key.file, line.text)) return {};
  const int error = errno;
  unlink(path.c_str());
  return cannot_write(path, error);
}

Result<void> append_new_key(const std::string& path, const std::string& name) {
  WARPLINE_CHECK(check_name(name));
  WARPLINE_TRY(const std::shared_ptr<const KeySet> keys, read_key_file(path));
  if (!name.empty() && std::ranges::find(keys->keys(), name, &Key::name) != keys->keys().end()) {
    return usage_error(fmt::format("cannot add a key '{}' to {}", name, path), "one there has that name",
                       "choose another");
  }
  NewLine line;
  WARPLINE_CHECK(line.make(name));
  const KeyFile key(path, O_RDWR | O_APPEND);
  struct stat facts{};
  if (key.file < 0 || fstat(key.file, &facts) != 0) return cannot_write(path, errno);
  char last = '\n';
  if (facts.st_size > 0 && pread(key.file, &last, 1, facts.st_size - 1) != 1) return cannot_write(path, errno);
  if (last != '\n' && !write_all(key.file, "\n")) return cannot_write(path, errno);
  if (!write_all(key.file, line.text)) return cannot_write(path, errno);
  return {};
}

}  // namespace warpline::protection
