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

/// Makes a file with a new key of the kernel's random numbers, which its owner alone may read and write. Usage error if
/// the file is there already, or if the name is none.
[[nodiscard]] Result<void> create_key_file(const std::string& path, const std::string& name);

/// Adds such a key behind those that are in a file. Fails as read_key_file() does; usage error, too, if one has that
/// name already.
[[nodiscard]] Result<void> append_new_key(const std::string& path, const std::string& name);

}  // namespace warpline::protection
