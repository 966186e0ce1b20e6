// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/check/check.h"

namespace warpline::config {

/// A Checker is what the checks of all commands begin with: the values, where they come from, and what was refused.
class Checker {
 protected:
  Checker(const Config& config, const GivenOptions& given) : config_(config), given_(given) {}
  ~Checker() = default;

  /// How messages name an option.
  [[nodiscard]] std::string place(std::string_view option) const { return given_(option).place; }

  void refuse(std::string what, std::string why, std::string fix);

  /// Refuses a flag or variable that does nothing. A file may serve several commands, so it may say what one ignores.
  void refuse_idle(std::string_view option, std::string why, std::string fix);

  const Config& config_;
  const GivenOptions& given_;
  std::vector<Error> problems_;  ///< in the order in which they were found
};

}  // namespace warpline::config
