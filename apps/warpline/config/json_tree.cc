// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>

#include <nlohmann/json.hpp>

#include "config/tree.h"

namespace warpline::config {
namespace {

/// Reads characters and counts lines; nlohmann's SAX interface does not say where a key stands. Its lexer reads a key
/// up to the closing quote and no further.
struct LineCountingIterator {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* position;
  std::uint32_t* line;

  reference operator*() const { return *position; }
  LineCountingIterator& operator++() {
    if (*position == '\n') ++*line;
    ++position;
    return *this;
  }
  LineCountingIterator operator++(int) {
    LineCountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const LineCountingIterator& other) const { return position == other.position; }
  bool operator!=(const LineCountingIterator& other) const { return position != other.position; }
};

class TreeBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  TreeBuilder(const std::string& path, const std::uint32_t& line) : path_(path), line_(line) {}

  bool null() override { return fail("null is no value"); }
  bool boolean(bool value) override { return scalar(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return scalar(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { return scalar(std::to_string(value)); }
  bool number_float(number_float_t, const string_t& text) override { return scalar(text); }
  bool string(string_t& value) override { return scalar(value); }
  bool binary(binary_t&) override { return fail("no option has binary data"); }
  bool start_object(std::size_t) override { return open(TreeNode::Kind::table); }
  bool start_array(std::size_t) override { return open(TreeNode::Kind::array); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    if (open_.back().member(name) != nullptr) return fail(fmt::format("the key '{}' is there twice", name));
    key_ = name;
    key_line_ = line_;
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& error) override {
    const std::string_view text = error.what();
    const std::size_t reason = text.find("column");
    const std::size_t colon = text.find(": ", reason == std::string_view::npos ? 0 : reason);
    return fail(std::string(colon == std::string_view::npos ? text : text.substr(colon + 2)));
  }

  Result<TreeNode> result() && {
    if (error_) return *std::move(error_);
    return std::move(root_);
  }

 private:
  bool fail(const std::string& why) {
    error_ = usage_error(fmt::format("{}:{}: cannot read the file", path_, line_), why, "mend that line");
    return false;
  }

  TreeNode make(TreeNode::Kind kind) {
    TreeNode node;
    node.kind = kind;
    node.name = std::exchange(key_, {});
    node.line = node.name.empty() ? line_ : key_line_;
    return node;
  }

  bool add(TreeNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
    } else {
      open_.back().children.push_back(std::move(node));
    }
    return true;
  }

  bool scalar(const std::string& text) {
    TreeNode node = make(TreeNode::Kind::scalar);
    node.text = text;
    return add(std::move(node));
  }

  bool open(TreeNode::Kind kind) {
    if (open_.size() > kMaxTreeDepth) return fail("it is nested too deep");
    open_.push_back(make(kind));
    return true;
  }

  bool close() {
    TreeNode node = std::move(open_.back());
    open_.pop_back();
    return add(std::move(node));
  }

  const std::string& path_;
  const std::uint32_t& line_;
  std::vector<TreeNode> open_;
  TreeNode root_;
  std::string key_;
  std::uint32_t key_line_ = 1;
  std::optional<Error> error_;
};

}  // namespace

const TreeNode* TreeNode::member(std::string_view wanted) const {
  const auto found = std::ranges::find(children, wanted, &TreeNode::name);
  return kind != Kind::table || found == children.end() ? nullptr : &*found;
}

Result<TreeNode> parse_json_tree(std::string_view text, const std::string& path) {
  std::uint32_t line = 1;
  TreeBuilder builder(path, line);
  const char* begin = text.data();
  const char* end = begin + text.size();
  nlohmann::json::sax_parse(LineCountingIterator{begin, &line}, LineCountingIterator{end, &line}, &builder);
  return std::move(builder).result();
}

}  // namespace warpline::config
