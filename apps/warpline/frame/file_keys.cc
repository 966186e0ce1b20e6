// SPDX-License-Identifier: Apache-2.0
#include "frame/file_keys.h"

#include <spdlog/spdlog.h>

#include "warpline/protection/key_file.h"
#include "warpline/runtime/reload_signal.h"

namespace warpline {

Result<FileKeys> FileKeys::read(std::string path) {
  WARPLINE_TRY(auto keys, protection::read_key_file(path));
  return FileKeys(std::move(path), std::make_shared<protection::Keys>(std::move(keys)));
}

void FileKeys::read_again_if_asked() {
  if (!runtime::ReloadOnSignal::take()) return;
  auto keys = protection::read_key_file(path_);
  if (!keys) {
    spdlog::error("the keys stay as they were: {}", keys.error().message());
    return;
  }
  spdlog::info("read the keys again: {}", protection::describe_change(*keys_->get(), **keys));
  keys_->replace(std::move(*keys));
}

}  // namespace warpline
