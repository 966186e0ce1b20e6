// SPDX-License-Identifier: Apache-2.0
#include "config/options.h"
#include "config/values.h"

namespace warpline::config {
namespace {

template <typename F>
auto of(F SelftestConfig::* field) {
  return field_of(&Config::selftest, field);
}

/// Specs of ports, as they are.
Access<Config> specs() {
  return {[](Config& config, std::span<const std::string> texts) -> Result<void> {
            for (const std::string& text : texts) {
              if (text.empty())
                return usage_error("cannot use ''", "it names no port", "write a PCI address or a vdev");
            }
            config.selftest.ports.assign(texts.begin(), texts.end());
            return {};
          },
          [](const Config& config) -> nlohmann::json { return config.selftest.ports; }, ""};
}

/// A GPU's number, or none.
Access<Config> gpu() {
  using Value = std::optional<std::uint16_t>;
  return scalar<Config>(
      of(&SelftestConfig::gpu),
      [](std::string_view text) -> Result<Value> {
        if (text == "none") return Value{};
        WARPLINE_TRY(const std::uint64_t value, parse_bounded(text, 0, 1023));
        return Value{static_cast<std::uint16_t>(value)};
      },
      [](const Value& value) { return value ? nlohmann::json(*value) : nlohmann::json("none"); }, "0..1023 or none");
}

}  // namespace

void add_selftest_options(std::vector<Option>& table) {
  const auto option = [&](std::string_view name, char letter, Arity arity, std::string_view argument,
                          std::string_view help, Access<Config> access) {
    table.push_back(
        {name, letter, "selftest", name, {Command::selftest}, arity, argument, help, std::move(access), ';'});
  };
  option("port", 0, Arity::list, "SPEC", "PCI address or vdev string: two that a cable joins; or one with a loopback",
         specs());
  option("gpu", 'g', Arity::single, "ID", "CUDA's number of a GPU that the ports are tried with", gpu());
  option("mtu", 0, Arity::single, "BYTES", "maximum size of a layer-3 packet, but for the steps about others",
         count<Config>(of(&SelftestConfig::mtu), 68, 9600));
  option("output", 0, Arity::single, "DIR", "folder of selftest.json, selftest.html and best.toml",
         text<Config>(of(&SelftestConfig::output)));
  option("quick", 0, Arity::flag, "", "fewer steps, and shorter ones", boolean<Config>(of(&SelftestConfig::quick)));
  option("again", 0, Arity::flag, "", "do all steps, also those whose results DIR has",
         boolean<Config>(of(&SelftestConfig::again)));
}

}  // namespace warpline::config
