// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "warpline/base/result.h"
#include "warpline/protection/aes_gcm.h"

namespace warpline::protection {

/// The key in a text of one: 32 hexadecimal digits on one line; empty lines and what follows a '#' do not count.
/// Usage error otherwise, which quotes nothing of the text.
[[nodiscard]] Result<AesKey> parse_key(std::string_view text, const std::string& path);

/// The key in a file. Refused, as an environment error, if anyone but its owner may read or write it.
[[nodiscard]] Result<AesKey> read_key_file(const std::string& path);

}  // namespace warpline::protection
