// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "warpline/base/result.h"
#include "warpline/protection/key_set.h"

namespace warpline {

/// `FileKeys` are the keys of --key FILE, for all protections of a run. Control thread.
class FileKeys {
 public:
  /// Fails as protection::read_key_file() does.
  [[nodiscard]] static Result<FileKeys> read(std::string path);

  /// Returns the keys, of which the protections are made.
  [[nodiscard]] const std::shared_ptr<protection::Keys>& keys() const { return keys_; }
  /// Reads the file again, and says in one line what changed. A file that cannot be used changes nothing, and is an
  /// error as of read().
  [[nodiscard]] Result<std::string> read_again();

 private:
  FileKeys(std::string path, std::shared_ptr<protection::Keys> keys) : path_(std::move(path)), keys_(std::move(keys)) {}

  std::string path_;
  std::shared_ptr<protection::Keys> keys_;
};

}  // namespace warpline
