// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "warpline/base/result.h"

namespace warpline::config {

/// A configuration file in the form that TOML and JSON have in common, scalars as their text.
struct TreeNode {
  enum class Kind : std::uint8_t { scalar, array, table };

  Kind kind = Kind::table;
  std::string name;                ///< of a table's member
  std::string text;                ///< of a scalar
  std::vector<TreeNode> children;  ///< elements or members, in the order of the file
  std::uint32_t line = 1;

  /// Null when there is none, or this is no table.
  [[nodiscard]] const TreeNode* member(std::string_view wanted) const;
};

/// Deeper files are refused: no configuration needs it, and the tree is walked by recursion.
inline constexpr unsigned kMaxTreeDepth = 8;
inline constexpr std::size_t kMaxFileBytes = 1 << 20;

// Usage errors begin with "PATH:LINE". No exception leaves.
[[nodiscard]] Result<TreeNode> parse_toml_tree(std::string_view text, const std::string& path);
[[nodiscard]] Result<TreeNode> parse_json_tree(std::string_view text, const std::string& path);

}  // namespace warpline::config
