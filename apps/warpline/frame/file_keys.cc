// SPDX-License-Identifier: Apache-2.0
#include "frame/file_keys.h"

#include <fmt/format.h>

#include "warpline/protection/key_file.h"

namespace warpline {

Result<FileKeys> FileKeys::read(std::string path) {
  WARPLINE_TRY(auto keys, protection::read_key_file(path));
  return FileKeys(std::move(path), std::make_shared<protection::Keys>(std::move(keys)));
}

Result<std::string> FileKeys::read_again() {
  auto keys = protection::read_key_file(path_);
  if (!keys) {
    Error error = std::move(keys).error();
    error.what = "the keys stay as they were: " + error.what;
    return error;
  }
  std::string said = fmt::format("read the keys again: {}", protection::describe_change(*keys_->get(), **keys));
  keys_->replace(std::move(*keys));
  return said;
}

}  // namespace warpline
