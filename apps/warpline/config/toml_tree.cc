// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>

#include "config/tree.h"

namespace warpline::config {
namespace {

Error at(const std::string& path, std::uint32_t line, std::string_view why) {
  return usage_error(fmt::format("{}:{}: cannot read the file", path, line), std::string(why), "mend that line");
}

Result<TreeNode> convert(const toml::node& node, const std::string& path, unsigned depth) {
  TreeNode tree;
  tree.line = node.source().begin.line;
  if (depth > kMaxTreeDepth) return at(path, tree.line, "it is nested too deep");
  if (const toml::table* table = node.as_table()) {
    for (const auto& [key, value] : *table) {
      WARPLINE_TRY(TreeNode child, convert(value, path, depth + 1));
      child.name = key.str();
      if (!value.is_array_of_tables()) child.line = key.source().begin.line;
      tree.children.push_back(std::move(child));
    }
    std::ranges::sort(tree.children, [](const TreeNode& a, const TreeNode& b) {
      return a.line != b.line ? a.line < b.line : a.name < b.name;
    });
    return tree;
  }
  if (const toml::array* array = node.as_array()) {
    tree.kind = TreeNode::Kind::array;
    for (const toml::node& element : *array) {
      WARPLINE_TRY(TreeNode child, convert(element, path, depth + 1));
      tree.children.push_back(std::move(child));
    }
    return tree;
  }
  tree.kind = TreeNode::Kind::scalar;
  if (const auto* text = node.as_string()) {
    tree.text = text->get();
  } else if (const auto* integer = node.as_integer()) {
    tree.text = std::to_string(integer->get());
  } else if (const auto* real = node.as_floating_point()) {
    tree.text = fmt::format("{}", real->get());
  } else if (const auto* boolean = node.as_boolean()) {
    tree.text = boolean->get() ? "true" : "false";
  } else {
    return at(path, tree.line, "no option has a date or a time of day");
  }
  return tree;
}

/// toml++ recurses on the parts of a dotted key without a bound.
Result<void> check_dots(std::string_view text, const std::string& path) {
  constexpr std::size_t kMaxDots = 1000;
  std::uint32_t line = 1;
  std::size_t dots = 0;
  for (const char c : text) {
    if (c == '\n') {
      ++line;
      dots = 0;
    }
    if (c == '.' && ++dots > kMaxDots) return at(path, line, "the line has too many dots");
  }
  return {};
}

}  // namespace

Result<TreeNode> parse_toml_tree(std::string_view text, const std::string& path) {
  WARPLINE_CHECK(check_dots(text, path));
  try {
    const toml::table table = toml::parse(text);
    return convert(table, path, 0);
  } catch (const toml::parse_error& error) {
    return at(path, error.source().begin.line, error.description());
  }
}

}  // namespace warpline::config
