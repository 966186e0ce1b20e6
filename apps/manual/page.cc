// SPDX-License-Identifier: Apache-2.0
#include "page.h"

#include <algorithm>
#include <cctype>
#include <sstream>

namespace warpline::manual {

using config::Command;
using config::Option;

std::string Page::words() const {
  std::string text(warpline::name(command));
  if (role) text += " " + std::string(warpline::name(*role));
  return text;
}

std::string Page::name() const {
  std::string text = "warpline-" + words();
  std::ranges::replace(text, ' ', '-');
  return text;
}

std::vector<Page> pages() {
  std::vector<Page> all;
  for (const Command command : config::kCommands) {
    const auto roles = config::roles_of(command);
    if (roles.empty()) all.push_back({command, std::nullopt});
    for (const config::Role role : roles) all.push_back({command, role});
  }
  return all;
}

std::vector<std::string> choices(const Option& option) {
  const std::string allowed = std::visit(
      [](const auto& access) -> std::string {
        if constexpr (requires { access.allowed; }) return access.allowed;
        return {};
      },
      option.access);
  const auto fits = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '|'; };
  const std::string text = allowed.empty() ? std::string(option.argument) : allowed;
  if (text.find('|') == std::string::npos || !std::ranges::all_of(text, fits)) return {};
  std::vector<std::string> words;
  std::istringstream parts(text);
  for (std::string word; std::getline(parts, word, '|');) words.push_back(word);
  return words;
}

bool is_path(const Option& option) {
  return option.argument == "FILE" || option.argument == "FILES" || option.argument == "DIR" ||
         (option.argument == "PATH" && option.name != "path");
}

}  // namespace warpline::manual
