// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "config/sources.h"
#include "config/tree.h"
#include "warpline/base/files/read_file.h"
#include "warpline/base/nearest.h"

namespace warpline::config {
namespace {

constexpr std::string_view kPortDefaults = "port-defaults";

class FileReader {
 public:
  FileReader(const std::string& path, FileContent& content, Problems& problems)
      : path_(path), content_(content), problems_(problems) {}

  void read(const TreeNode& root) {
    for (const TreeNode& section : root.children) {
      if (section.name == "port") {
        read_ports(section);
      } else if (section.name == kPortDefaults || is_section(section.name)) {
        read_section(section, section.name == kPortDefaults ? "port" : section.name, content_.values);
      } else {
        unknown_section(section);
      }
    }
  }

 private:
  static bool is_section(std::string_view wanted) {
    return !wanted.empty() && std::ranges::any_of(options(), [&](const Option& o) { return o.section == wanted; });
  }

  [[nodiscard]] Origin origin(const TreeNode& node) const {
    return {Source::file, fmt::format("{}:{}", path_, node.line)};
  }

  void problem(const TreeNode& node, std::string_view what, std::string why, std::string fix = {}) {
    problems_.push_back(usage_error(fmt::format("{}:{}: {}", path_, node.line, what), std::move(why), std::move(fix)));
  }

  void unknown_section(const TreeNode& node) {
    std::vector<std::string> known = {"port", std::string(kPortDefaults)};
    for (const Option& option : options()) {
      if (option.section.empty()) continue;
      known.emplace_back(option.section);
      if (option.key == node.name && node.kind != TreeNode::Kind::table) {
        return problem(node, fmt::format("unknown section '{}'", node.name), "keys stand in sections",
                       fmt::format("did you mean the key '{}'?", option.path()));
      }
    }
    problem(node, fmt::format("unknown section '{}'", node.name), "no option has that name",
            fmt::format("did you mean '{}'?", nearest(node.name, known)));
  }

  void read_ports(const TreeNode& ports) {
    const auto is_table = [](const TreeNode& node) { return node.kind == TreeNode::Kind::table; };
    if (ports.kind != TreeNode::Kind::array || !std::ranges::all_of(ports.children, is_table)) {
      return problem(ports, "cannot use 'port'", "it is no array of tables", "write [[port]] above each port's keys");
    }
    for (const TreeNode& table : ports.children) {
      PortTable port;
      port.origin = origin(table);
      read_section(table, "port", port.values);
      std::erase_if(port.values, [&](const Assignment& value) {
        if (value.option->key != "spec") return false;
        if (!value.texts.empty()) port.spec = value.texts.front();
        return true;
      });
      const auto same = [&](const PortTable& other) { return other.spec == port.spec; };
      if (port.spec.empty()) {
        problem(table, "cannot use the port", "it has no spec", "add spec = \"SPEC\"");
      } else if (std::ranges::any_of(content_.ports, same)) {
        problem(table, fmt::format("cannot use the port '{}'", port.spec), "the file has it twice", "leave one out");
      } else {
        content_.ports.push_back(std::move(port));
      }
    }
  }

  void read_section(const TreeNode& table, std::string_view section, std::vector<Assignment>& values) {
    if (table.kind != TreeNode::Kind::table) {
      return problem(table, fmt::format("cannot use '{}'", table.name), "it is a section, not a value",
                     "write its name in brackets, with its keys below");
    }
    for (const TreeNode& node : table.children) read_value(node, table.name, section, values);
  }

  void read_value(const TreeNode& node, std::string_view table, std::string_view section,
                  std::vector<Assignment>& values) {
    const bool defaults = table == kPortDefaults;
    const auto fits = [&](const Option& o) {
      return o.section == section && o.key == node.name && !(defaults && !o.is_port_setup());
    };
    const auto option = std::ranges::find_if(options(), fits);
    if (option == options().end()) {
      return problem(node, fmt::format("unknown key '{}.{}'", section, node.name), "no option has that name",
                     fmt::format("did you mean '{}'?", nearest_key(section, node.name)));
    }
    if (defaults && option->arity == Arity::by_port) {
      return problem(node, fmt::format("cannot use '{}' as a default", node.name), "it belongs to one port",
                     "move it to a [[port]] table");
    }
    std::vector<std::string> texts;
    if (node.kind == TreeNode::Kind::scalar) {
      const bool several = option->arity == Arity::list && option->key != "spec";
      texts = several ? split(node.text, option->separator) : std::vector<std::string>{node.text};
    } else if (node.kind == TreeNode::Kind::array && option->arity == Arity::list && option->key != "spec") {
      for (const TreeNode& element : node.children) {
        if (element.kind != TreeNode::Kind::scalar) return not_a_value(element, *option);
        texts.push_back(element.text);
      }
    } else {
      return not_a_value(node, *option);
    }
    values.push_back({&*option, std::move(texts), origin(node)});
  }

  void not_a_value(const TreeNode& node, const Option& option) {
    problem(node, fmt::format("cannot use '{}'", option.path()), "it has one plain value",
            "write a number, true, false or a text");
  }

  /// A key of the same section when there is a near one, else of any.
  static std::string nearest_key(std::string_view section, std::string_view key) {
    std::vector<std::string> known;
    for (const Option& option : options()) {
      if (!option.section.empty()) known.push_back(option.path());
    }
    return nearest(fmt::format("{}.{}", section, key), known);
  }

  const std::string& path_;
  FileContent& content_;
  Problems& problems_;
};

}  // namespace

FileContent read_config_file(std::string_view text, const std::string& path, Problems& problems) {
  FileContent content;
  if (text.size() > kMaxFileBytes) {
    problems.push_back(usage_error(fmt::format("{}: cannot read the file", path), "it is longer than 1 MiB",
                                   "name a configuration with --config"));
    return content;
  }
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool json = first != std::string_view::npos && text[first] == '{';
  auto tree = json ? parse_json_tree(text, path) : parse_toml_tree(text, path);
  if (!tree.ok()) {
    problems.push_back(std::move(tree).error());
    return content;
  }
  const TreeNode* root = &*tree;
  const TreeNode* config = root->member("config");
  if (root->member("schema_version") != nullptr && config != nullptr) root = config;
  FileReader(path, content, problems).read(*root);
  return content;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

Result<std::string> read_text_file(const std::string& path) {
  const auto failure = [&](int number) {
    return usage_error(fmt::format("cannot read the configuration file '{}'", path), std::strerror(number),
                       "check --config");
  };
  FileText file = read_file(path, kMaxFileBytes + 1);  // one more than allowed: read_config_file refuses it
  if (file.problem != 0) return failure(file.problem);
  return std::move(file.text);
}

}  // namespace warpline::config
