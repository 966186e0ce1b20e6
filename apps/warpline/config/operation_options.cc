// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "config/options.h"
#include "config/values.h"
#include "warpline/capture/packet_filter.h"

namespace warpline::config {
namespace {

/// An address with its port, the path of a Unix socket, or "none".
Access<Config> metrics_listen() {
  using Value = decltype(exporter::ExporterSettings::listen);
  return scalar<Config>(
      field_of(&Config::metrics, &exporter::ExporterSettings::listen),
      [](std::string_view text) -> Result<Value> {
        if (text == "none") return Value{};
        if (text.starts_with('/')) return Value{std::string(text)};
        WARPLINE_TRY(const SocketAddress address, parse_socket_address(text));
        return Value{address};
      },
      [](const Value& value) {
        if (const auto* const address = std::get_if<SocketAddress>(&value)) return to_string(*address);
        const auto* const path = std::get_if<std::string>(&value);
        return path != nullptr ? *path : std::string("none");
      },
      "ADDR:PORT, /PATH or none");
}

Access<Config> metrics_allowed() {
  return {[](Config& config, std::span<const std::string> texts) -> Result<void> {
            std::vector<InterfaceAddress> networks;
            for (const std::string& text : texts) {
              WARPLINE_TRY(const InterfaceAddress network, parse_interface_address(text));
              networks.push_back(network);
            }
            config.metrics.allowed = std::move(networks);
            return {};
          },
          [](const Config& config) {
            nlohmann::json networks = nlohmann::json::array();
            for (const InterfaceAddress& network : config.metrics.allowed) networks.push_back(to_string(network));
            return networks;
          },
          {}};
}

/// Empty, or what may be the name of a folder.
template <typename Field>
Access<Config> telemetry_name(Field field) {
  return scalar<Config>(
      field,
      [](std::string_view text) -> Result<std::string> {
        const auto fits = [](char c) {
          return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
        };
        if (text.size() <= 64 && std::ranges::all_of(text, fits)) return std::string(text);
        return usage_error("cannot use '" + std::string(text) + "'", "it is no name",
                           "use up to 64 of A-Z a-z 0-9 - _");
      },
      [](const std::string& value) { return value; });
}

/// "dropped", "all" or "sample=1/N".
Access<Config> capture_selection() {
  constexpr std::string_view kSample = "sample=1/";
  constexpr std::uint64_t kMost = 1'000'000'000;
  return scalar<Config>(
      field_of(&Config::capture, &capture::CaptureSettings::what),
      [=](std::string_view text) -> Result<capture::Selection> {
        if (text == "dropped") return capture::Selection{};
        if (text == "all") return capture::Selection{.dropped_only = false};
        if (!text.starts_with(kSample)) {
          return usage_error(fmt::format("cannot use '{}'", text), "it is none of dropped, all and sample=1/N",
                             "write dropped, all, or sample=1/1000 for each thousandth packet");
        }
        WARPLINE_TRY(const std::uint64_t one_in, parse_bounded(text.substr(kSample.size()), 1, kMost));
        return capture::Selection{.dropped_only = false, .one_in = static_cast<std::uint32_t>(one_in)};
      },
      [=](const capture::Selection& what) {
        if (what.dropped_only) return std::string("dropped");
        return what.one_in == 1 ? std::string("all") : fmt::format("{}{}", kSample, what.one_in);
      },
      "dropped|all|sample=1/N");
}

/// Empty, or an expression that libpcap compiles.
Access<Config> capture_filter() {
  return scalar<Config>(
      field_of(&Config::capture, &capture::CaptureSettings::filter),
      [](std::string_view text) -> Result<std::string> {
        WARPLINE_CHECK(capture::PacketFilter::compile(std::string(text)));
        return std::string(text);
      },
      [](const std::string& value) { return value; });
}

/// "1/N".
Access<Config> trace_sample() {
  constexpr std::string_view kOne = "1/";
  return scalar<Config>(
      field_of(&Config::attach, &AttachConfig::one_in),
      [=](std::string_view text) -> Result<std::uint32_t> {
        if (!text.starts_with(kOne)) {
          return usage_error(fmt::format("cannot use '{}'", text), "it is not 1/N",
                             "write 1/1000 for each thousandth batch");
        }
        WARPLINE_TRY(const std::uint64_t one_in, parse_bounded(text.substr(kOne.size()), 1, 1'000'000'000));
        return static_cast<std::uint32_t>(one_in);
      },
      [=](const std::uint32_t& one_in) { return fmt::format("{}{}", kOne, one_in); }, "1/N");
}

void add_capture_options(std::vector<Option>& table) {
  using capture::CaptureSettings;
  const auto option = [&](std::string_view name, std::string_view key, std::string_view argument, std::string_view help,
                          Access<Config> access) {
    table.push_back({name,
                     0,
                     "capture",
                     key,
                     {Command::forward, Command::l3forward, Command::capture},
                     Arity::single,
                     argument,
                     help,
                     std::move(access)});
  };
  option("capture", "file", "FILE", "write packets to a pcapng file, dropped ones with the reason",
         text<Config>(field_of(&Config::capture, &CaptureSettings::file)));
  option("capture-what", "what", "WHICH", "packets that are captured", capture_selection());
  option("capture-filter", "filter", "EXPR", "only those that match, as for tcpdump: 'udp port 9'", capture_filter());
  option("capture-snaplen", "snaplen", "BYTES", "first bytes of each packet that are kept",
         count<Config>(field_of(&Config::capture, &CaptureSettings::snaplen), 14, 16'384));
  option("capture-limit", "limit", "BYTES", "maximum disk space; the newest stay",
         count<Config>(field_of(&Config::capture, &CaptureSettings::limit), 256U << 10, 1ULL << 50));
}

}  // namespace

void add_operation_options(std::vector<Option>& table) {
  const std::vector<Command> runs = {Command::forward,  Command::l3forward, Command::ingest,
                                     Command::generate, Command::message,   Command::stream};
  table.insert(table.end(), {{"metrics", 0, "metrics", "listen", runs, Arity::single, "WHERE",
                              "answer Prometheus at an address or a Unix socket", metrics_listen()},
                             {"metrics-allow", 0, "metrics", "allow", runs, Arity::list, "ADDR/LEN",
                              "network that may ask for metrics, beside this machine; repeatable", metrics_allowed()},
                             {"telemetry", 0, "runtime", "telemetry", runs, Arity::single, "NAME",
                              "answer dpdk-telemetry.py --file-prefix NAME",
                              telemetry_name(field_of(&Config::runtime, &runtime::RuntimeSettings::telemetry))},
                             {"crash-report", 0, "runtime", "crash-report", runs, Arity::single, "FILE",
                              "write signal, stack and last counters to a file if the program crashes",
                              text<Config>([](auto& config) -> auto& { return config.crash_report; })},
                             {"keep-privileges", 0, "runtime", "keep-privileges", runs, Arity::flag, "",
                              "give up no capabilities, system calls and files after set-up, for debugging",
                              boolean<Config>([](auto& config) -> auto& { return config.keep_privileges; })}});
  add_capture_options(table);
}

void add_setup_options(std::vector<Option>& table) {
  const auto option = [&](std::string_view name, Arity arity, std::string_view argument, std::string_view help,
                          Access<Config> access, std::vector<Role> roles) {
    table.push_back(
        {name, 0, "setup", name, {Command::setup}, arity, argument, help, std::move(access), ',', std::move(roles)});
  };
  const auto of = [](auto SetupConfig::* field) { return field_of(&Config::setup, field); };
  const auto of_pages = [](auto setup::HugepageRequest::* field) {
    return [field](auto& config) -> auto& { return config.setup.pages.*field; };
  };
  const auto bytes = [&](Bytes setup::HugepageRequest::* field, std::uint64_t min, std::uint64_t max, auto parse) {
    return scalar<Config>(
        of_pages(field),
        [=](std::string_view text) -> Result<Bytes> {
          WARPLINE_TRY(const std::uint64_t value, parse(text, min, max));
          return Bytes{value};
        },
        [](Bytes value) { return value.value; }, fmt::format("{}..{}", min, max));
  };
  using Node = std::optional<std::uint16_t>;
  option("pci", Arity::single, "ADDR", "address of the network function that vfio-pci is to have",
         text<Config>(of(&SetupConfig::pci)), {Role::nic});
  option("memory", Arity::single, "BYTES", "hugepages that are to be free",
         bytes(&setup::HugepageRequest::memory, 1, 1ULL << 50, parse_bounded), {Role::hugepages});
  option("page", Arity::single, "BYTES", "size of each",
         bytes(&setup::HugepageRequest::page, 64U << 10, 16ULL << 30, parse_power_of_two), {Role::hugepages});
  option(
      "node", Arity::single, "N", "NUMA node that they are to be on",
      scalar<Config>(
          of_pages(&setup::HugepageRequest::node),
          [](std::string_view text) -> Result<Node> {
            if (text == "any") return Node{};
            WARPLINE_TRY(const std::uint64_t value, parse_bounded(text, 0, 1023));
            return Node{static_cast<std::uint16_t>(value)};
          },
          [](const Node& value) { return value ? nlohmann::json(*value) : nlohmann::json("any"); }, "0..1023 or any"),
      {Role::hugepages});
  option("name", Arity::single, "NAME", "the user, who is not root", text<Config>(of(&SetupConfig::name)),
         {Role::user});
  option("apply", Arity::flag, "", "do it, and record what was there before", boolean<Config>(of(&SetupConfig::apply)),
         {});
  option("undo", Arity::flag, "", "put back what was there before --apply", boolean<Config>(of(&SetupConfig::undo)),
         {});
}

void add_attach_options(std::vector<Option>& table) {
  const std::vector<Command> attaching = {Command::ctl, Command::top, Command::capture, Command::trace};
  table.push_back({"telemetry", 0, "attach", "telemetry", attaching, Arity::single, "NAME",
                   "the running process: its own --telemetry NAME",
                   telemetry_name(field_of(&Config::attach, &AttachConfig::telemetry))});
  table.push_back({"pid", 0, "attach", "pid", attaching, Arity::single, "N",
                   "the running process by its number; 0: by its name",
                   count<Config>(field_of(&Config::attach, &AttachConfig::pid), 0, 1U << 22)});
  table.push_back({"sample",
                   0,
                   "attach",
                   "sample",
                   {Command::trace},
                   Arity::single,
                   "1/N",
                   "a packet of each Nth batch of a queue",
                   trace_sample()});
}

}  // namespace warpline::config
