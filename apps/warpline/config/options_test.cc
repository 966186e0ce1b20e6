// SPDX-License-Identifier: Apache-2.0
#include "config/options.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "config/help.h"
#include "config/load_testing.h"

namespace warpline::config {
namespace {

/// A value other than the default for each option, in the environment's form.
std::string other_value(const Option& option) {
  static const std::map<std::string_view, std::string> texts = {
      {"port", "net_null7"},
      {"config", "a.toml"},
      {"eal", "--log-level=8"},
      {"memory", "pinned"},
      {"pool", "queue"},
      {"on-gpu-failure", "failover"},
      {"watchdog", "2s"},
      {"engine", "thread"},
      {"model", "pipeline"},
      {"workload", "count"},
      {"rate", "1gbit"},
      {"loss-ratio", "1%"},
      {"exceed-ratio", "0.25"},
      {"width", "0.01"},
      {"size", "128"},
      {"src-mac", "02:00:00:00:00:0a"},
      {"dst-mac", "02:00:00:00:00:0b"},
      {"src-ip", "10.0.0.1"},
      {"dst-ip", "10.0.0.2"},
      {"rx-offloads", "scatter"},
      {"tx-offloads", "multi_segs"},
      {"rss-key", "6d5a"},
      {"rss-fields", "ip"},
      {"address", "10.0.0.1/24"},
      {"promiscuous", "off"},
      {"recycle", "cache"},
      {"lookup", "fib"},
      {"seconds", "3s"},
      {"interval", "2s"},
      {"log-level", "debug"},
      {"deadline", "7us"},
      {"packet-time", "9ns"},
      {"drain", "1s"},
      {"listen", "10.0.0.1:7000"},
      {"connect", "10.0.0.2:7000"},
      {"gateway", "10.0.0.3"},
      {"udp-checksum", "off"},
      {"test", "rate"},
      {"cc", "dctcp"},
      {"reliability", "go-back-n"},
      {"priority", "high"},
      {"role", "transmit"},
      {"path", "zerocopy"},
      {"consumer", "sum"},
      {"frame", "packets=4,seq=0:32,payload=8:64"},
      {"ring", "128Ki"},
      {"congestion", "fixed"},
      {"ack", "gpu"},
      {"processing", "off"},
      {"io", "gpu"},
      {"send-engine", "launch"},
      {"attach-mode", "0660"},
      {"poll-for", "20us"},
      {"metrics", "127.0.0.1:9462"},
      {"metrics-allow", "10.0.0.0/8"},
      {"capture-what", "sample=1/8"},
      {"sample", "1/8"},
      {"capture-filter", "udp"},
      {"capture-limit", "1Mi"},
  };
  if (option.section == "stream" && option.name == "listen") return "7000";
  if (option.section == "stream" && option.name == "window") return "128Ki";
  const bool counts_requests = option.name == "rate" && option.section == "message";
  if (const auto found = texts.find(option.name); !counts_requests && found != texts.end()) return found->second;
  return option.arity == Arity::flag ? "true" : "128";
}

/// The value of `option` in a loaded configuration, as JSON.
nlohmann::json value_in(const Option& option, const Config& config) {
  if (const auto* access = std::get_if<Access<Config>>(&option.access)) return access->get(config);
  const auto* access = std::get_if<Access<port::PortSettings>>(&option.access);
  return access == nullptr ? nlohmann::json()
                           : access->get(config.ports.empty() ? config.port_defaults : config.ports[0]);
}

TEST(Options, NamesAreUniqueInACommandAndKeysInAFile) {
  std::set<std::string> names, keys;
  for (const Option& option : options()) {
    for (const Command command : option.commands) {
      EXPECT_TRUE(names.insert(option.variable(command)).second) << option.variable(command);
      if (option.short_name == 0) continue;
      EXPECT_TRUE(names.insert(std::string(name(command)) + option.short_name).second) << option.name;
    }
    const bool is_new = option.section.empty() || keys.insert(option.path()).second;
    EXPECT_TRUE(is_new) << option.path();
  }
}

TEST(Options, EachHasAFlagAVariableAndALineInTheHelp) {
  for (const Command command :
       {Command::forward, Command::l3forward, Command::ingest, Command::generate, Command::message, Command::stream}) {
    const std::string base = "config check " + std::string(name(command)) + " ";
    for (const Option& option : options()) {
      if (!option.taken_by(command)) continue;
      EXPECT_NE(command_help(command).find(option.flag() +
                                           (option.argument.empty() ? " " : " " + std::string(option.argument))),
                std::string::npos)
          << option.name;
      if (option.name == "json" || option.name == "config") continue;
      const std::string value = other_value(option);
      const std::string ports = option.name == "address" ? " --port net_null0" : "";
      const auto flagged = load_line(fmt::format("{}{}={}{}", base, option.flag(), value, ports));
      const auto exported = load_line(base + ports, "", {{option.variable(command), value}});
      ASSERT_TRUE(flagged.ok() && exported.ok()) << option.name;
      EXPECT_EQ(value_in(option, flagged->config), value_in(option, exported->config)) << option.name;
      EXPECT_NE(value_in(option, flagged->config), value_in(option, Config{})) << option.name;
    }
  }
}

TEST(Options, EachHasAKeyInTheFile) {
  for (const Option& option : options()) {
    if (option.section.empty() || option.name == "json") continue;
    if (find_option(option.commands.front(), "config") == nullptr) continue;  // bench reads no file
    const std::string value = option.arity == Arity::flag ? "true" : "\"" + other_value(option) + "\"";
    std::string file = "[" + std::string(option.section) + "]\n" + std::string(option.key) + " = " + value + "\n";
    if (option.is_port_setup()) file = "[[port]]\nspec = \"net_null0\"\n" + file.substr(file.find('\n') + 1);
    if (option.name == "port") file = "[[port]]\nspec = \"net_null7\"\n";
    const std::string command(name(option.commands.front()));
    const auto loaded = load_line("config check " + command + " --config a.toml", file);
    ASSERT_TRUE(loaded.ok()) << outcome(loaded);
    EXPECT_NE(value_in(option, loaded->config), value_in(option, Config{})) << option.name;
  }
}

TEST(Options, DefaultsPassTheirOwnChecks) {
  for (const Option& option : options()) {
    if (option.name == "port" || option.name == "config" || option.arity == Arity::list) continue;
    const nlohmann::json json = value_in(option, Config{});
    const std::string text = json.is_string() ? json.get<std::string>() : json.dump();
    Config config;
    port::PortSettings port;
    if (const auto* access = std::get_if<Access<Config>>(&option.access)) {
      EXPECT_TRUE(access->set(config, std::vector<std::string>{text}).ok()) << option.name;
    } else {
      EXPECT_TRUE(std::get<Access<port::PortSettings>>(option.access).set(port, std::vector<std::string>{text}).ok())
          << option.name;
    }
    EXPECT_EQ(config, Config{}) << option.name;
    EXPECT_EQ(port, port::PortSettings{}) << option.name;
  }
}

TEST(Help, IsAskedForAnywhereBeforeTheEndOfOptions) {
  EXPECT_EQ(requested_text({"--help"}, "1"), program_help());
  EXPECT_EQ(requested_text({"-h"}, "1"), program_help());
  EXPECT_EQ(requested_text({"forward", "--burst", "3", "-h"}, "1"), command_help(Command::forward));
  EXPECT_EQ(requested_text({"config", "show", "--help"}, "1"), command_help(Command::config));
  EXPECT_EQ(requested_text({"message", "key", "--help"}, "1"), command_help(Command::message_key));
  EXPECT_EQ(requested_text({"message", "key", "new", "-h"}, "1"), command_help(Command::message_key));
  EXPECT_EQ(requested_text({"--version"}, "1.2.3"), "warpline 1.2.3\n");
  EXPECT_EQ(requested_text({"forward", "--eal=-h"}, "1"), std::nullopt);
  EXPECT_EQ(requested_text({"forward", "--", "-h"}, "1"), std::nullopt);
  EXPECT_EQ(requested_text({"forwrad", "--help"}, "1"), std::nullopt);
  EXPECT_EQ(requested_text({}, "1"), std::nullopt);
}

TEST(Help, NamesTheOptionsOfOneMessageRole) {
  const std::string server = *requested_text({"message", "server", "--help"}, "1");
  const std::string client = *requested_text({"message", "client", "-h"}, "1");
  const std::string daemon = *requested_text({"message", "daemon", "--help"}, "1");
  EXPECT_EQ(requested_text({"message", "--help"}, "1"), command_help(Command::message));
  for (const Option& option : options()) {
    if (!option.taken_by(Command::message)) continue;
    const std::string flag = option.flag() + " ";
    EXPECT_EQ(server.find(flag) != std::string::npos, option.is_for(Role::server)) << option.name;
    EXPECT_EQ(client.find(flag) != std::string::npos, option.is_for(Role::client)) << option.name;
    EXPECT_EQ(daemon.find(flag) != std::string::npos, option.is_for(Role::daemon)) << option.name;
  }
  EXPECT_NE(client.find("message client [options]"), std::string::npos);
}

TEST(Help, LinesFitATerminalOfMostWidths) {
  for (const Command command : kCommands) {
    std::istringstream lines(command_help(command));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120U) << line;
  }
}

}  // namespace
}  // namespace warpline::config
