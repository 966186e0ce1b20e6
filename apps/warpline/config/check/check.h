// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "config/load.h"
#include "config/options.h"
#include "warpline/base/result.h"

namespace warpline::config {

/// How messages name an option: as the user gave it ("--burst", "WARPLINE_FORWARD_BURST", "a.toml:3: forward.burst").
struct GivenOption {
  std::string place;
  Source source;
};
using GivenOptions = std::function<GivenOption(std::string_view option)>;

/// What no single option can know: contradictions between values, each one usage error. Commands that move no packets
/// have nothing to contradict. Without `needs_port`, having no port is fine.
[[nodiscard]] std::vector<Error> check_config(const Config& config, const GivenOptions& given, bool needs_port = true);

}  // namespace warpline::config
