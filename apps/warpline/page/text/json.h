// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

namespace warpline::page {

/// `Json` keeps the members of an object in the file's order, in which people wrote them.
using Json = nlohmann::ordered_json;

}  // namespace warpline::page
