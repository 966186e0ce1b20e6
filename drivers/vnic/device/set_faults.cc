// SPDX-License-Identifier: Apache-2.0
#include "vnic/api/set_faults.h"

#include <cerrno>
#include <exception>
#include <string_view>

#include "vnic/args/fault_args.h"
#include "vnic/common/log.h"
#include "vnic/device/registry.h"

using namespace warpline;
using namespace warpline::vnic;

namespace {

Result<void> parse(std::string_view text, FaultConfig& config) {
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find(','));
    text.remove_prefix(pair.size() < text.size() ? pair.size() + 1 : pair.size());
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos) {
      return usage_error("faults: '" + std::string(pair) + "'", "not of the form key=value");
    }
    WARPLINE_CHECK(set_fault(config, pair.substr(0, equals), pair.substr(equals + 1)));
  }
  return {};
}

}  // namespace

int rte_net_vnic_set_faults(std::uint16_t port_id, const char* text) {
  try {
    const auto lock = lock_registry();
    Device* const device = find_device(port_id);
    if (device == nullptr) return -ENODEV;
    const std::string_view all = text != nullptr ? text : "";
    FaultConfig config;
    if (!all.empty()) config = device->egress.faults().config();
    if (const auto parsed = parse(all, config); !parsed.ok()) {
      log_error("%s: %s", device->name.c_str(), parsed.error().message().c_str());
      return -EINVAL;
    }
    return device->egress.set_faults(config);
  } catch (const std::exception&) {
    return -ENOMEM;
  }
}
