// SPDX-License-Identifier: Apache-2.0
// Scripts of segments: whatever the text, it is read or refused with the line, and what was read keeps what it
// promises.

#include <string_view>

#include "fuzz/packet_input.h"
#include "script.h"

using namespace warpline;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto script = stream_script::parse_script(text, "fuzz");
  if (!script.ok()) {
    require(script.error().kind == ErrorKind::usage, "a refusal is a usage error");
    require(script.error().what.find("fuzz:") != std::string::npos, "and names the line");
    return 0;
  }
  for (const stream_script::Event& event : script->events) {
    require(event.when.from >= 0 && event.when.from <= event.when.to, "times go on");
    if (const auto* const injected = std::get_if<stream_script::Injected>(&event.what)) {
      require(injected->length <= 65'000, "what is injected fits a packet");
    } else if (const auto* const expected = std::get_if<stream_script::Expected>(&event.what)) {
      require(expected->length == 0, "no bytes are expected");
    }
  }
  return 0;
}
