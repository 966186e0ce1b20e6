// SPDX-License-Identifier: Apache-2.0
#include "rate/offered_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "rate/command_words.h"

namespace warpline::rate {
namespace {

using config::LoadedConfig;

constexpr std::string_view kSetBySearch[] = {"traffic.rate", "message.rate", "run.seconds", "run.json",
                                             "run.json-stream"};
constexpr std::string_view kBounds[] = {"run.packets", "message.requests"};

bool is_supplied(const std::string& spec) {
  return spec.starts_with("net_vnic") &&
         (spec.find(",wire=source") != std::string::npos || spec.find(",wire=static") != std::string::npos);
}

const config::Setting* find_setting(const LoadedConfig& loaded, std::string_view name) {
  const auto found = std::ranges::find(loaded.settings, name, &config::Setting::name);
  return found == loaded.settings.end() ? nullptr : &*found;
}

/// "run.seconds" as "--seconds".
std::string flag_of(std::string_view setting) { return fmt::format("--{}", setting.substr(setting.find('.') + 1)); }

/// What the search sets itself, and what would end a trial before its time.
Result<void> refuse_taken(const LoadedConfig& loaded) {
  for (const std::string_view name : kSetBySearch) {
    const config::Setting* setting = find_setting(loaded, name);
    if (setting == nullptr || setting->origin.source != config::Source::flag) continue;
    return usage_error(fmt::format("cannot use {} in --of", flag_of(name)), "the search sets it for every trial",
                       "leave it out");
  }
  for (const std::string_view name : kBounds) {
    const config::Setting* setting = find_setting(loaded, name);
    if (setting == nullptr || setting->value == 0) continue;
    return usage_error(fmt::format("cannot use {} in --of", flag_of(name)), "a trial ends by its time", "leave it out");
  }
  return {};
}

Error no_load(const std::string& what, std::string fix) {
  return usage_error(fmt::format("cannot search for the rate of {}", what), "nothing offers it load at a rate",
                     std::move(fix));
}

}  // namespace

Result<void> OfferedCommand::take_ports(const LoadedConfig& loaded) {
  const config::Command command = loaded.config.command;
  source_ = LoadSource::wire;
  interfaces_ = 0;
  for (std::size_t i = 0; i < loaded.config.ports.size(); ++i) {
    const std::string& spec = loaded.config.ports[i].spec;
    const bool supplied = is_supplied(spec);
    if (supplied && spec.find(",rate=") != std::string::npos) {
      return usage_error(fmt::format("cannot use port {} in --of", spec), "the search sets its rate for every trial",
                         "leave rate= out");
    }
    const config::Setting* setting = find_setting(loaded, fmt::format("port[{}].spec", i));
    if (supplied && setting != nullptr && setting->origin.source == config::Source::file) {
      return usage_error(fmt::format("cannot use port {} of {} in --of", spec, setting->origin.where),
                         "the search adds a rate to it", "give it by --port");
    }
    ports_.push_back({spec, supplied});
    interfaces_ += supplied ? 1 : 0;
  }
  if (interfaces_ != 0) return {};
  const std::string loopback =
      command == config::Command::forward || command == config::Command::ingest ? "add --loopback, or " : "";
  return no_load(std::string(name(command)),
                 loopback +
                     "use a port such as net_vnic0,wire=source; or search from the other end of its "
                     "cable: --of \"generate ...\"");
}

Result<void> OfferedCommand::take(const LoadedConfig& loaded) {
  const config::Config& config = loaded.config;
  switch (loaded.command) {
    case config::Command::forward:
      if (config.forward.tx_first != 0) {
        return usage_error("cannot use --tx-first in --of", "what circulates on a wire has no rate", "leave it out");
      }
      if (!config.forward.loopback) return take_ports(loaded);
      break;
    case config::Command::ingest:
      if (!config.forward.loopback) return take_ports(loaded);
      break;
    case config::Command::l3forward:
      return take_ports(loaded);
    case config::Command::generate:
      if (config.traffic.role != traffic::TrafficRole::both) {
        return usage_error(fmt::format("cannot use --role {} in --of", name(config.traffic.role)),
                           "one process has to know what was sent and what came back", "leave it out");
      }
      interfaces_ = static_cast<std::uint32_t>(config.ports.size());
      break;
    case config::Command::message:
      if (config.role != config::Role::client) {
        return no_load(fmt::format("message {}", name(config.role)),
                       "search from its client: --of \"message client ...\"");
      }
      source_ = LoadSource::client;
      break;
    default:
      return no_load(std::string(name(loaded.command)), "use forward, ingest, l3forward, generate or message client");
  }
  return {};
}

Result<OfferedCommand> OfferedCommand::parse(const std::string& text, const config::Environment& environment,
                                             const config::ReadFile& read_file) {
  if (text.empty()) {
    return usage_error("cannot search for a rate", "it is not said of what", "add --of \"forward --loopback\"");
  }
  OfferedCommand command;
  WARPLINE_TRY(command.words_, split_words(text));
  const auto is_program = [](const std::string& word) { return word == "warpline" || word.ends_with("/warpline"); };
  if (!command.words_.empty() && is_program(command.words_.front())) command.words_.erase(command.words_.begin());
  command.text_ = fmt::format("{}", fmt::join(command.words_, " "));
  auto loaded = config::load(command.words_, environment, read_file);
  if (!loaded) {
    Error error = std::move(loaded).error();
    error.what = fmt::format("--of: {}", error.what);
    return error;
  }
  WARPLINE_CHECK(command.take(*loaded));
  WARPLINE_CHECK(refuse_taken(*loaded));
  if (command.ports_.empty()) return command;
  std::erase_if(command.words_, [](const std::string& word) { return word.starts_with("--port="); });
  for (auto word = std::ranges::find(command.words_, "--port"); word != command.words_.end();
       word = std::ranges::find(command.words_, "--port")) {
    command.words_.erase(word, word + 2);
  }
  return command;
}

std::vector<std::string> OfferedCommand::arguments(const TrialInput& trial,
                                                   std::optional<std::uint16_t> frame_bytes) const {
  std::vector<std::string> all = words_;
  const std::string per_second = fmt::format("{:.3f}pps", trial.load);
  for (const GivenPort& port : ports_) {
    all.insert(all.end(), {"--port", port.supplied ? fmt::format("{},rate={}", port.spec, per_second) : port.spec});
  }
  if (source_ == LoadSource::generator) all.insert(all.end(), {"--rate", per_second});
  if (source_ == LoadSource::client) all.insert(all.end(), {"--rate", std::to_string(std::llround(trial.load))});
  if (frame_bytes) all.insert(all.end(), {"--size", std::to_string(*frame_bytes)});
  all.insert(all.end(), {"--seconds", to_string(trial.duration), "--json"});
  return all;
}

}  // namespace warpline::rate
