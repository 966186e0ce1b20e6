// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/options.h"

namespace warpline::manual {

/// A command with its options: a page of the manual, and what shells complete behind its words.
struct Page {
  config::Command command;
  std::optional<config::Role> role;  ///< of those that have some

  [[nodiscard]] std::string words() const;  ///< "message server"
  [[nodiscard]] std::string name() const;   ///< "warpline-message-server"
};

/// Returns all, in the order of the help.
[[nodiscard]] std::vector<Page> pages();

/// Returns the words that an option may have as its value: "host", "pinned", "device"; empty: it is not one of some.
[[nodiscard]] std::vector<std::string> choices(const config::Option& option);
/// True if an option's value is the path of a file or folder.
[[nodiscard]] bool is_path(const config::Option& option);

/// Returns the text of a page, or of the program as a whole, for man(1). `version` and `date` stand in its footer.
[[nodiscard]] std::string man_page(const Page& page, std::string_view version, std::string_view date);
[[nodiscard]] std::string program_man_page(std::string_view version, std::string_view date);

// What shells read to complete command lines.
[[nodiscard]] std::string bash_completion();
[[nodiscard]] std::string zsh_completion();
[[nodiscard]] std::string fish_completion();

}  // namespace warpline::manual
