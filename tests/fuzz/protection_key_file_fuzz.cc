// SPDX-License-Identifier: Apache-2.0
// Any bytes as a key file: either every line is used, or the error names one of them and shows nothing of it.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "warpline/protection/key_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace warpline;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto set = protection::parse_keys(text, "fuzz");
  if (!set.ok()) {
    const Error& error = set.error();
    const bool named = error.kind == ErrorKind::usage && error.what.ends_with("in fuzz");
    if (!named || error.why.empty() || error.fix.empty()) std::abort();
    for (std::size_t i = 0; i + 8 <= size; ++i) {
      const std::string_view part = text.substr(i, 8);
      const bool digits = part.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
      if (digits && error.why.find(part) != std::string::npos) std::abort();
    }
    return 0;
  }
  for (const protection::Key& key : (*set)->keys()) {
    if ((*set)->find(key.id) != &key || !(key.name.empty() || protection::is_key_name(key.name))) std::abort();
  }
  return 0;
}
