// SPDX-License-Identifier: Apache-2.0
#include "config/options.h"
#include "config/values.h"

namespace warpline::config {
namespace {

template <typename F>
auto of(F StreamConfig::* field) {
  return field_of(&Config::stream, field);
}

/// An address that is not there is an empty text.
Access<Config> server_address() {
  return {[](Config& config, std::span<const std::string> texts) -> Result<void> {
            if (texts.front().empty()) {
              config.stream.connect.reset();
              return {};
            }
            WARPLINE_TRY(config.stream.connect, parse_socket_address(texts.front()));
            return {};
          },
          [](const Config& config) { return config.stream.connect ? to_string(*config.stream.connect) : ""; },
          {}};
}

}  // namespace

void add_stream_options(std::vector<Option>& table) {
  std::vector<Role> roles = {Role::receive, Role::proxy};
  const auto option = [&](std::string_view name, Arity arity, std::string_view argument, std::string_view help,
                          Access<Config> access, char short_name = 0) {
    table.push_back(
        {name, short_name, "stream", name, {Command::stream}, arity, argument, help, std::move(access), ',', roles});
  };
  option("listen", Arity::list, "PORT", "TCP port to listen on; repeatable",
         counts<Config>(of(&StreamConfig::listen), 1, 65'535));
  option("connections", Arity::single, "N", "maximum at once",
         count<Config>(of(&StreamConfig::connections), 1, 16'384));
  option("ring", Arity::single, "BYTES", "memory per connection and its window",
         power_of_two<Config>(of(&StreamConfig::ring), 64 << 10, 1 << 30));
  option("populate", Arity::flag, "", "take the memory of all rings at the start, not as bytes come",
         boolean<Config>(of(&StreamConfig::populate)));
  option("keepalive", Arity::single, "S", "silence after which a peer is asked for a sign of life; 0: never",
         nanos<Config>(of(&StreamConfig::keepalive), kSecond, Nanos{0}, Nanos{86'400 * kSecond}));

  roles = {Role::receive, Role::proxy, Role::send};
  option("pipelines", Arity::single, "N", "queue pairs of the port, each with a core and connections of its own",
         count<Config>(of(&StreamConfig::pipelines), 1, 256), 'p');
  option("vlan", Arity::single, "ID", "VLAN of the port; 0: untagged", count<Config>(of(&StreamConfig::vlan), 0, 4094));

  roles = {Role::receive};
  option("output", Arity::single, "DIR", "write each connection's bytes to a file of its own there",
         text<Config>(of(&StreamConfig::output)));

  option("io", Arity::single, "WHO", "who takes packets and posts acknowledgements; gpu: the engine",
         choice<Config>(of(&StreamConfig::io)));
  option("ack", Arity::single, "KIND", "who writes acknowledgements; gpu: the engine, as with --io gpu",
         choice<Config>(of(&StreamConfig::ack)));
  option("processing", Arity::single, "on|off", "off: check and acknowledge bytes, and keep none",
         boolean<Config>(of(&StreamConfig::processing)));
  option("verify", Arity::flag, "", "compare every byte with what stream send --seed N makes",
         boolean<Config>(field_of(&Config::run, &report::RunSettings::verify)));

  roles = {Role::send, Role::receive};
  option("engine", Arity::single, "KIND", "what takes, or fills, segments", choice<Config>(of(&StreamConfig::engine)));
  option("memory", Arity::single, "KIND", "where the rings are; engine on a GPU: device",
         optional_choice<Config>(of(&StreamConfig::memory)), 'm');
  option("gpu", Arity::single, "ID", "CUDA ordinal of the engine's GPU", count<Config>(of(&StreamConfig::gpu), 0, 255),
         'g');
  option("watchdog", Arity::single, "MS", "an engine without progress for so long has failed",
         nanos<Config>(of(&StreamConfig::watchdog), kMilli, Nanos{kMilli}, Nanos{3600 * kSecond}));
  option("chunk", Arity::single, "BYTES", "send: acknowledged before the next; receive: taken at once; 0: none",
         unbounded<Config>(of(&StreamConfig::chunk)));
  option("seed", Arity::single, "N", "seed for the payload",
         unbounded<Config>(field_of(&Config::run, &report::RunSettings::seed)));

  roles = {Role::send};
  option("gateway", Arity::single, "IP", "router for a receiver that is not on the port's link; none",
         optional_address<Config>(of(&StreamConfig::gateway)));
  option("bytes", Arity::single, "BYTES", "of each connection; 0: until the end",
         unbounded<Config>(of(&StreamConfig::bytes)));
  option("parallel", Arity::single, "N", "connections to open", count<Config>(of(&StreamConfig::parallel), 1, 16'384),
         'P');
  option("congestion", Arity::single, "KIND", "control of what is on its way",
         choice<Config>(of(&StreamConfig::congestion)));
  option("window", Arity::single, "BYTES", "maximum per connection on its way",
         count<Config>(of(&StreamConfig::window), 16 << 10, 1 << 30));

  roles = {Role::proxy, Role::send};
  option("connect", Arity::single, "ADDR:PORT", "receiver, or the proxy's server of messages", server_address());

  roles = {Role::proxy};
  option("key", Arity::single, "FILE", "encrypt messages with the first key in FILE; SIGHUP: read again",
         text<Config>(of(&StreamConfig::key)));
  option("peer-timeout", Arity::single, "MS", "silence of the server after which its connections are reset",
         nanos<Config>(of(&StreamConfig::peer_timeout), kMilli, Nanos{kMilli}, Nanos{3600 * kSecond}));
}

}  // namespace warpline::config
