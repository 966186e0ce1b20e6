// SPDX-License-Identifier: Apache-2.0
// Any bytes as the configuration file that a run began with, up to the first NUL, and as the one that it reads again:
// what is taken over is what may change, and the file read once more changes nothing.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "config/reload.h"

namespace warpline {
namespace {

config::ReadFile file_of(std::string_view text) {
  return [text = std::string(text)](const std::string&) -> Result<std::string> { return text; };
}

void run(const std::string& command, std::string_view first, std::string_view then) {
  const auto loaded = config::load({command, "--port", "net_null0", "--config", "x"}, {}, file_of(first));
  if (!loaded.ok()) return;
  const auto reloaded = config::reload(*loaded, file_of(then));
  if (!reloaded.ok()) {
    const Error& error = reloaded.error();
    if (error.kind != ErrorKind::usage || error.what.empty() || error.why.empty() || error.fix.empty()) std::abort();
    return;
  }
  if (reloaded->changed.empty() && !(reloaded->next.config == loaded->config)) std::abort();
  for (const std::string& flag : reloaded->changed) {
    const config::Option* const option = config::find_option(loaded->command, flag.substr(2));
    if (option == nullptr || !option->reloads()) std::abort();
  }
  const auto again = config::reload(reloaded->next, file_of(then));
  if (!again.ok() || !again->changed.empty() || again->fixed != reloaded->fixed) std::abort();
}

}  // namespace
}  // namespace warpline

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t end = std::min(text.find('\0'), text.size());
  constexpr const char* kCommands[] = {"forward", "l3forward", "generate"};
  warpline::run(kCommands[data[0] % 3], text.substr(0, end), text.substr(std::min(end + 1, text.size())));
  return 0;
}
