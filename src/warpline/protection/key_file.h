// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "warpline/base/result.h"
#include "warpline/protection/key_set.h"

namespace warpline::protection {

/// Returns the keys in a text: on each line one of 32 hexadecimal digits, with a name before it or none; empty lines
/// and what follows a '#' do not count. Usage error otherwise, which names the line and quotes no digit of it.
[[nodiscard]] Result<std::shared_ptr<const KeySet>> parse_keys(std::string_view text, const std::string& path);

/// Returns the keys in a file. Refused, as an environment error, if anyone but its owner may read or write it.
[[nodiscard]] Result<std::shared_ptr<const KeySet>> read_key_file(const std::string& path);

}  // namespace warpline::protection
