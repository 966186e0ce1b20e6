// SPDX-License-Identifier: Apache-2.0
#include "warpline/report/facts.h"

#include <sys/utsname.h>

#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include <rte_version.h>

namespace warpline::report {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string trimmed(std::string text) {
  const auto end = text.find_last_not_of(" \t\n");
  text.erase(end == std::string::npos ? 0 : end + 1);
  text.erase(0, text.find_first_not_of(" \t"));
  return text;
}

/// What follows `key` and `separator` in each line that begins with it.
std::vector<std::string> values_of(const fs::path& file, std::string_view key, char separator) {
  std::vector<std::string> values;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const auto at = line.find(separator);
    if (at != std::string::npos && trimmed(line.substr(0, at)) == key) values.push_back(trimmed(line.substr(at + 1)));
  }
  return values;
}

std::string first_value_of(const fs::path& file, std::string_view key, char separator) {
  const auto values = values_of(file, key, separator);
  return values.empty() ? std::string() : values.front();
}

std::uint64_t number(const std::string& text) { return text.empty() ? 0 : std::strtoull(text.c_str(), nullptr, 10); }

int count_nodes(const fs::path& folder) {
  int nodes = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("node") && name.size() > 4 && name.find_first_not_of("0123456789", 4) == std::string::npos) {
      ++nodes;
    }
  }
  return nodes > 0 ? nodes : 1;
}

Json hugepages(const fs::path& folder) {
  Json pages = Json::object();
  std::error_code error;
  std::set<std::string> names;  // in order
  for (const auto& entry : fs::directory_iterator(folder, error)) names.insert(entry.path().filename());
  for (const std::string& name : names) {
    constexpr std::string_view kPrefix = "hugepages-";
    if (!name.starts_with(kPrefix)) continue;
    std::ifstream in(folder / name / "nr_hugepages");
    std::string count;
    if (in >> count) pages[name.substr(kPrefix.size())] = number(count);
  }
  return pages;
}

constexpr std::string_view compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#else
  return "gcc " __VERSION__;
#endif
}

}  // namespace

Json build_facts() {
  return {
      {"version", WARPLINE_VERSION}, {"type", WARPLINE_BUILD_TYPE}, {"compiler", compiler()}, {"dpdk", rte_version()}};
}

Json host_facts(const fs::path& root) {
  const auto cpus = values_of(root / "proc/cpuinfo", "processor", ':').size();
  const std::string model = first_value_of(root / "proc/cpuinfo", "model name", ':');
  std::string os = first_value_of(root / "etc/os-release", "PRETTY_NAME", '=');
  if (os.size() >= 2 && os.front() == '"') os = os.substr(1, os.size() - 2);
  utsname kernel{};
  uname(&kernel);
  return {{"cpu", model.empty() ? kernel.machine : model},
          {"cpus", cpus},
          {"nodes", count_nodes(root / "sys/devices/system/node")},
          {"memory_bytes", number(first_value_of(root / "proc/meminfo", "MemTotal", ':')) * 1024},
          {"kernel", kernel.release},
          {"os", os},
          {"hugepages", hugepages(root / "sys/kernel/mm/hugepages")}};
}

}  // namespace warpline::report
