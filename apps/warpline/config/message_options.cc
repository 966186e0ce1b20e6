// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "config/options.h"
#include "config/values.h"

namespace warpline::config {
namespace {

constexpr std::uint32_t kLongestMessage = 16U << 20;

template <typename F>
auto of(F MessageConfig::* field) {
  return field_of(&Config::message, field);
}

template <typename F>
auto quota_of(F message::SessionQuotas::* field) {
  return [field](auto& config) -> auto& { return config.message.quotas.*field; };
}

/// A count, or "automatic" for an unset one.
Access<Config> automatic_count(std::optional<std::uint32_t> MessageConfig::* field, std::uint64_t min,
                               std::uint64_t max) {
  using Value = std::optional<std::uint32_t>;
  return scalar<Config>(
      of(field),
      [=](std::string_view text) -> Result<Value> {
        if (text == "automatic") return Value{};
        WARPLINE_TRY(const std::uint64_t value, parse_bounded(text, min, max));
        return Value{static_cast<std::uint32_t>(value)};
      },
      [](const Value& value) { return value ? nlohmann::json(*value) : nlohmann::json("automatic"); },
      fmt::format("{}..{} or automatic", min, max));
}

Access<Config> listen_address() {
  return scalar<Config>(
      of(&MessageConfig::listen), [](std::string_view text) { return parse_socket_address(text); },
      [](const SocketAddress& value) { return to_string(value); });
}

Access<Config> server_addresses() {
  return {[](Config& config, std::span<const std::string> texts) -> Result<void> {
            std::vector<SocketAddress> servers;
            for (const std::string& text : texts) {
              WARPLINE_TRY(const SocketAddress server, parse_socket_address(text));
              servers.push_back(server);
            }
            config.message.connect = std::move(servers);
            return {};
          },
          [](const Config& config) {
            nlohmann::json servers = nlohmann::json::array();
            for (const SocketAddress& server : config.message.connect) servers.push_back(to_string(server));
            return servers;
          },
          {}};
}

template <typename F>
auto daemon_of(F daemon::DaemonSettings::* field) {
  return [field](auto& config) -> auto& { return config.message.daemon.*field; };
}

template <typename F>
auto limit_of(F daemon::ClientLimits::* field) {
  return [field](auto& config) -> auto& { return config.message.daemon.client.*field; };
}

/// Permissions of a file, as chmod takes them.
Access<Config> file_mode() {
  return scalar<Config>(
      daemon_of(&daemon::DaemonSettings::mode),
      [](std::string_view text) -> Result<std::uint32_t> {
        std::uint32_t mode = 0;
        for (const char c : text) mode = mode > 0777 || c < '0' || c > '7' ? 01000 : mode * 8 + (c - '0');
        if (text.empty() || mode > 0777)
          return usage_error(fmt::format("cannot use '{}'", text), "permissions are 0 to 0777, octal", "use 0660, say");
        return mode;
      },
      [](std::uint32_t mode) { return fmt::format("0{:o}", mode); }, "0..0777, octal");
}

/// Numbers of users; none: any.
Access<Config> user_ids() {
  return {[](Config& config, std::span<const std::string> texts) -> Result<void> {
            std::vector<uid_t> users;
            for (const std::string& text : texts) {
              WARPLINE_TRY(const std::uint64_t user, parse_bounded(text, 0, 0xfffffffe));
              users.push_back(static_cast<uid_t>(user));
            }
            config.message.daemon.users = std::move(users);
            return {};
          },
          [](const Config& config) -> nlohmann::json { return config.message.daemon.users; },
          {}};
}

Access<Config> reliability() {
  return scalar<Config>(
      of(&MessageConfig::go_back_n),
      [](std::string_view text) { return parse_choice(text, {"selective", "go-back-n"}); },
      [](bool go_back_n) { return std::string(go_back_n ? "go-back-n" : "selective"); }, "selective|go-back-n");
}

}  // namespace

void add_message_options(std::vector<Option>& table) {
  std::vector<Role> roles;
  const auto option = [&](std::string_view name, char short_name, Arity arity, std::string_view argument,
                          std::string_view help, Access<Config> access) {
    table.push_back(
        {name, short_name, "message", name, {Command::message}, arity, argument, help, std::move(access), ',', roles});
  };
  const auto single = [&](std::string_view name, char short_name, std::string_view argument, std::string_view help,
                          Access<Config> access) {
    option(name, short_name, Arity::single, argument, help, std::move(access));
  };
  single("gateway", 0, "IP", "router for peers that are not on the ethdev port's link; none",
         optional_address<Config>(of(&MessageConfig::gateway)));
  single("vlan", 0, "ID", "VLAN of an ethdev port; 0: untagged", count<Config>(of(&MessageConfig::vlan), 0, 4094));
  single("udp-checksum", 0, "on|off", "UDP checksums of an ethdev port over IPv4; IPv6 always has one",
         scalar<Config>(of(&MessageConfig::udp_checksum), parse_bool, [](bool on) { return on; }));
  single("seconds", 't', "S", "stop after S; 0: unlimited",
         nanos<Config>(field_of(&Config::run, &report::RunSettings::seconds), kSecond, Nanos{0},
                       Nanos{100 * 24 * 3600 * kSecond}));
  single("cc", 0, "KIND", "congestion control", choice<Config>(of(&MessageConfig::cc)));
  single("grants", 0, "BYTES", "maximum of long messages in flight to each worker; 0: unlimited",
         count<Config>(of(&MessageConfig::grants), 0, 1U << 30));
  single("key", 0, "FILE", "encrypt with keys in FILE, clients with its first; SIGHUP: read again",
         text<Config>(of(&MessageConfig::key)));
  single("rto", 0, "MS", "go-back-n: fixed retransmission timeout",
         nanos<Config>(of(&MessageConfig::rto), kMilli, Nanos{kMilli / 10}, Nanos{kSecond}));
  single("credits", 0, "N", "go-back-n: packets in flight", count<Config>(of(&MessageConfig::credits), 1, 4096));
  single("peer-timeout", 0, "MS", "silence after which a peer is lost",
         nanos<Config>(of(&MessageConfig::peer_timeout), kMilli, Nanos{kMilli}, Nanos{3600 * kSecond}));
  single("datagram", 0, "BYTES", "maximum UDP payload; 0: what fits the MTU",
         count<Config>(of(&MessageConfig::datagram), 0, 65'507));
  single("workers", 0, "N", "threads, each with a queue pair or socket",
         count<Config>(of(&MessageConfig::workers), 1, 128));
  single("gpu", 'g', "ID", "CUDA's number of the GPU that -m is about",
         count<Config>(of(&MessageConfig::gpu), 0, 1023));
  single("sessions", 0, "N", "maximum per worker", count<Config>(of(&MessageConfig::sessions), 1, 1 << 20));

  roles = {Role::server, Role::daemon};
  single("listen", 0, "ADDR:PORT", "address to receive on", listen_address());
  const auto quota = [&](std::string_view name, std::string_view argument, std::string_view help, auto member,
                         std::uint64_t most) {
    single(name, 0, argument, help, count<Config>(quota_of(member), 0, most));
  };
  using Quotas = message::SessionQuotas;
  constexpr std::uint64_t kMostSessions = 1 << 20;
  quota("sessions-per-address", "N", "of each worker, with one address; 0: unlimited", &Quotas::per_address,
        kMostSessions);
  quota("sessions-per-prefix", "N", "of each worker, with one /24 or IPv6 /64; 0: unlimited", &Quotas::per_prefix,
        kMostSessions);
  quota("half-open-per-address", "N", "unconfirmed sessions of one address; 0: a quarter of all",
        &Quotas::half_open_per_address, kMostSessions);
  quota("half-open-per-prefix", "N", "of one /24 or IPv6 /64; 0: half of all", &Quotas::half_open_per_prefix,
        kMostSessions);
  quota("bytes-per-address", "BYTES", "arriving from one address; 0: half of free memory", &Quotas::bytes_per_address,
        1ULL << 40);
  quota("bytes-per-prefix", "BYTES", "arriving from one /24 or IPv6 /64; 0: all", &Quotas::bytes_per_prefix,
        1ULL << 40);
  single("strangers", 0, "N", "packets per second outside of sessions",
         count<Config>(of(&MessageConfig::strangers), 1, 1'000'000'000));

  roles = {Role::daemon};
  using Settings = daemon::DaemonSettings;
  using Limits = daemon::ClientLimits;
  const auto limit = [&](std::string_view name, std::string_view help, std::uint32_t Limits::* member,
                         std::uint64_t least, std::uint64_t most) {
    single(name, 0, member == &Limits::message_bytes ? "BYTES" : "N", help,
           count<Config>(limit_of(member), least, most));
  };
  single("attach", 0, "PATH", "Unix socket by which programs attach", text<Config>(daemon_of(&Settings::path)));
  single("attach-mode", 0, "MODE", "its permissions", file_mode());
  option("attach-user", 0, Arity::list, "UID", "user who may attach; repeatable; none: who may open the socket",
         user_ids());
  single("clients", 0, "N", "programs at once", count<Config>(daemon_of(&Settings::clients), 1, 4096));
  single("clients-per-user", 0, "N", "of each user; 0: unlimited",
         count<Config>(daemon_of(&Settings::clients_per_user), 0, 4096));
  limit("client-calls", "under way for each program", &Limits::calls, 1, 65'536);
  limit("client-requests", "handed to each program; as many more wait", &Limits::requests, 1, 65'536);
  limit("client-sessions", "opened by each program", &Limits::sessions, 1, 65'536);
  limit("client-message", "longest message of programs", &Limits::message_bytes, 64, kLongestMessage);

  single("poll-for", 0, "US", "look for work so long before sleeping",
         optional_nanos<Config>(daemon_of(&Settings::poll_for), kMicro, Nanos{0}, Nanos{kSecond}));

  roles = {Role::client};
  option("connect", 0, Arity::list, "ADDR:PORT", "server to talk to; repeatable", server_addresses());
  single("test", 0, "KIND", "traffic to make", choice<Config>(of(&MessageConfig::test)));
  single("length", 'l', "BYTES", "size of a message", automatic_count(&MessageConfig::length, 0, kLongestMessage));
  single("outstanding", 0, "N", "requests in flight per session",
         automatic_count(&MessageConfig::outstanding, 1, 4096));
  single("parallel", 'P', "N", "sessions to open", count<Config>(of(&MessageConfig::parallel), 1, 1 << 20));
  single("requests", 'n', "N", "stop after N; 0: unlimited", unbounded<Config>(of(&MessageConfig::requests)));
  single("rate", 0, "N", "requests per second of all sessions, answered or not; 0: as responses come",
         unbounded<Config>(of(&MessageConfig::rate)));
  option("bidir", 0, Arity::flag, "", "bandwidth: responses are as long as requests",
         boolean<Config>(of(&MessageConfig::bidir)));
  single("priority", 0, "KIND", "of requests and responses; high goes first",
         choice<Config>(of(&MessageConfig::priority)));
  option("reconnect", 0, Arity::flag, "", "open lost sessions again instead of ending",
         boolean<Config>(of(&MessageConfig::reconnect)));
  single("reliability", 0, "KIND", "go-back-n for comparison", reliability());
}

void add_key_options(std::vector<Option>& table) {
  const std::vector<Command> key = {Command::message_key};
  table.push_back({"file",
                   0,
                   "key",
                   "file",
                   key,
                   Arity::list,
                   "FILE",
                   "keys, one a line",
                   paths<Config>(field_of(&Config::key, &KeyConfig::files)),
                   ':',
                   {},
                   true});
  table.push_back({"name", 0, "key", "name", key, Arity::single, "NAME", "new: what people call the key",
                   text<Config>(field_of(&Config::key, &KeyConfig::name))});
  table.push_back({"append", 0, "key", "append", key, Arity::flag, "", "new: add it to the keys that are in FILE",
                   boolean<Config>(field_of(&Config::key, &KeyConfig::append))});
}

}  // namespace warpline::config
