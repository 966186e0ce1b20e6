// SPDX-License-Identifier: Apache-2.0
#include "config/reload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "config/load_testing.h"

namespace warpline::config {
namespace {

using Names = std::vector<std::string>;

/// What becomes of `line` when "a.toml" is `then` and no longer `first`.
Result<Reloaded> reload_line(const std::string& line, const std::string& first, const std::string& then) {
  const Result<LoadedConfig> loaded = load_line(line, first);
  if (!loaded) return loaded.error();
  return reload(*loaded, [&](const std::string& path) -> Result<std::string> {
    EXPECT_EQ(path, "a.toml");
    return then;
  });
}

TEST(Reload, TakesOverWhatMayChangeAndNamesTheRest) {
  const auto reloaded = reload_line("generate --port net_null0 --config a.toml",
                                    "[traffic]\nrate = \"1kpps\"\nflows = 7\n[port-defaults]\nmtu = 900\n",
                                    "[traffic]\nrate = \"2Mpps\"\nflows = 8\n[port-defaults]\nmtu = 901\n");
  ASSERT_TRUE(reloaded.ok()) << reloaded.error().message();
  EXPECT_EQ(reloaded->changed, Names{"--rate"});
  EXPECT_EQ(reloaded->fixed, (Names{"--flows", "--mtu"}));
  EXPECT_EQ(std::get<PacketRate>(reloaded->next.config.traffic.rate).value, 2e6);
  EXPECT_EQ(reloaded->next.config.traffic.flows, 7U);
  EXPECT_EQ(shown(Result<LoadedConfig>(reloaded->next), "traffic.rate"), "\"2mpps\" file a.toml:2");
  EXPECT_EQ(shown(Result<LoadedConfig>(reloaded->next), "traffic.flows"), "7 file a.toml:3");
}

TEST(Reload, TakesOverHowMuchIsSaid) {
  const auto reloaded =
      reload_line("generate --port net_null0 --config a.toml", "[run]\ninterval = \"1s\"\nseconds = 3\n",
                  "[run]\ninterval = \"2s\"\nseconds = 4\n[runtime]\nlog-level = \"debug\"\n");
  ASSERT_TRUE(reloaded.ok()) << reloaded.error().message();
  EXPECT_EQ(reloaded->changed, (Names{"--interval", "--log-level"}));
  EXPECT_EQ(reloaded->fixed, Names{"--seconds"});
  EXPECT_EQ(reloaded->next.config.run.interval, Nanos{2'000'000'000});
  EXPECT_EQ(reloaded->next.config.runtime.log_level, runtime::LogLevel::debug);
}

TEST(Reload, OfTheSameFileChangesNothingAndAFlagStillWins) {
  const auto reloaded = reload_line("generate --port net_null0 --rate 5kpps --config a.toml", "[traffic]\nflows = 7\n",
                                    "[traffic]\nflows = 7\nrate = \"9kpps\"\n");
  ASSERT_TRUE(reloaded.ok()) << reloaded.error().message();
  EXPECT_EQ(reloaded->changed, Names{});
  EXPECT_EQ(reloaded->fixed, Names{});
}

TEST(Reload, NamesPortsThatComeAndGo) {
  const std::string one = "[[port]]\nspec = \"net_null0\"\nmtu = 900\n";
  const std::string two = one + "[[port]]\nspec = \"net_null1\"\n";
  for (const auto& [before, after] : {std::pair{one, two}, {two, one}}) {
    const auto reloaded = reload_line("forward --config a.toml", before, after);
    ASSERT_TRUE(reloaded.ok()) << reloaded.error().message();
    EXPECT_EQ(std::ranges::count(reloaded->fixed, "--port"), 1);
    EXPECT_EQ(reloaded->changed, Names{});
  }
}

TEST(Reload, RefusesAFileThatIsWrong) {
  EXPECT_EQ(reload_line("forward --port net_null0 --config a.toml", "", "[forward]\nburst = 9999\n")
                .error()
                .what.substr(0, 23),
            "a.toml:2: forward.burst");
}

}  // namespace
}  // namespace warpline::config
