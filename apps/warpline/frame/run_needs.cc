// SPDX-License-Identifier: Apache-2.0
#include "frame/run_needs.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <variant>
#include <vector>

#include "warpline/runtime/telemetry/telemetry_folder.h"

namespace warpline {
namespace {

/// Returns the folder of a file, in which the file is replaced or removed; of a device, such as /dev/stdout, itself.
std::filesystem::path folder_of(const std::string& file) {
  std::error_code problem;
  if (std::filesystem::is_character_file(file, problem)) return file;
  return std::filesystem::absolute(file).parent_path();
}

/// Adds a file that is read again: its folder, and that of the file which a symbolic link leads to.
void add_read(const std::string& file, sandbox::Needs& needs) {
  needs.reads.push_back(folder_of(file));
  std::error_code problem;
  const std::filesystem::path target = std::filesystem::canonical(file, problem).parent_path();
  if (!problem && target != needs.reads.back()) needs.reads.push_back(target);
}

/// Adds what a port still needs: files that its driver closes or takes away, and interfaces that it sets back.
void add_port_needs(std::string_view spec, sandbox::Needs& needs) {
  const std::string_view device = spec.substr(0, spec.find(','));
  const bool vdev = device.starts_with("net_");
  const auto is_of = [&](std::string_view driver) { return device.starts_with(driver); };
  needs.asks_kernel |= !vdev || is_of("net_tap") || is_of("net_af_packet") || is_of("net_af_xdp");
  needs.sets_interfaces |= is_of("net_tap") || is_of("net_af_xdp");
  needs.xdp |= is_of("net_af_xdp");
  for (std::size_t begin = spec.find(','); begin != std::string_view::npos;) {
    const std::size_t end = spec.find(',', begin + 1);
    const std::string_view argument = spec.substr(begin + 1, end - begin - 1);
    const std::size_t equals = argument.find('=');
    const std::string_view key = argument.substr(0, equals);
    const bool is_socket =
        key == "socket" || (key == "iface" && is_of("net_vhost")) || (key == "path" && is_of("net_virtio_user"));
    if (equals != std::string_view::npos && (key == "tx_pcap" || is_socket)) {
      needs.writes.push_back(folder_of(std::string(argument.substr(equals + 1))));
    }
    begin = end;
  }
}

bool runs_gpu(const config::Config& config) {
  const bool forwards = config.command == config::Command::forward || config.command == config::Command::ingest;
  if (forwards && runs_on_gpu(config.forward.engine)) return true;
  if (config.command == config::Command::stream) {
    return runs_on_gpu(config.stream.engine) || config.stream.rings() != memory::MemoryKind::host;
  }
  return config.pool.memory != memory::MemoryKind::host;
}

}  // namespace

sandbox::Needs needs_of(const config::Config& config, const std::string& config_file, bool physical) {
  sandbox::Needs needs;
  needs.physical = physical;
  needs.gpu = runs_gpu(config);
  for (const port::PortSettings& port : config.ports) add_port_needs(port.spec, needs);
  const std::string& key = config.command == config::Command::stream ? config.stream.key : config.message.key;
  needs.secrets = !key.empty();
  for (const std::string& file : {config_file, key, config.l3forward.routes}) {
    if (!file.empty()) add_read(file, needs);
  }
  if (!config.crash_report.empty()) needs.writes.push_back(folder_of(config.crash_report));
  if (!config.capture.file.empty()) needs.writes.push_back(folder_of(config.capture.file));
  if (!config.stream.output.empty()) needs.writes.push_back(std::filesystem::absolute(config.stream.output));
  if (!config.message.daemon.path.empty()) needs.writes.push_back(folder_of(config.message.daemon.path));
  if (const auto* const path = std::get_if<std::string>(&config.metrics.listen))
    needs.writes.push_back(folder_of(*path));
  if (!config.runtime.telemetry.empty()) {
    needs.writes.push_back(runtime::telemetry_folder(config.runtime.telemetry).parent_path());
  }
  return needs;
}

}  // namespace warpline
