// SPDX-License-Identifier: Apache-2.0
#include "config/check/checker.h"

#include <fmt/format.h>

#include <utility>

namespace warpline::config {

void Checker::refuse(std::string what, std::string why, std::string fix) {
  problems_.push_back(usage_error(std::move(what), std::move(why), std::move(fix)));
}

void Checker::refuse_idle(std::string_view option, std::string why, std::string fix) {
  const GivenOption given = given_(option);
  if (given.source != Source::flag && given.source != Source::environment) return;
  refuse(fmt::format("cannot use {}", given.place), std::move(why), std::move(fix));
}

}  // namespace warpline::config
