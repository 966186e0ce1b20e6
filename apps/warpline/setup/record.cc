// SPDX-License-Identifier: Apache-2.0
#include "setup/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <nlohmann/json.hpp>

namespace warpline::setup {
namespace {

Result<std::vector<Before>> read_record(const MachineFiles& machine, const std::string& path) {
  if (!machine.exists(path)) return std::vector<Before>();
  Result<std::vector<Before>> record = parse_record(machine.read(path));
  if (record.ok()) return record;
  Error error = record.error();
  error.what = fmt::format("cannot read {}", path);
  error.fix = fmt::format("put back by hand what was set up, and remove {}", path);
  return error;
}

/// Removes a record, and its folders where they are empty then.
Result<void> forget(MachineFiles& machine, const std::string& path) {
  WARPLINE_CHECK(machine.remove_file(path));
  std::error_code not_empty;
  const std::filesystem::path folder = machine.at(path).parent_path();
  if (std::filesystem::remove(folder, not_empty)) std::filesystem::remove(folder.parent_path(), not_empty);
  return {};
}

}  // namespace

std::string record_path(std::string_view target) { return fmt::format("/var/lib/warpline/setup/{}.json", target); }

std::string to_text(const std::vector<Before>& record) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Before& before : record) {
    list.push_back({{"kind", name(before.change.kind)},
                    {"path", before.change.path},
                    {"value", before.change.value},
                    {"before", before.value}});
  }
  const nlohmann::ordered_json document = {{"schema_version", 1}, {"changes", list}};
  return document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Result<std::vector<Before>> parse_record(const std::string& text) {
  const Error wrong = environment_error("cannot read the record of set-up", "it is not one that this program wrote");
  const nlohmann::json document = nlohmann::json::parse(text, nullptr, false);
  if (!document.is_object() || document.value("schema_version", nlohmann::json()) != 1) return wrong;
  const auto changes = document.find("changes");
  if (changes == document.end() || !changes->is_array()) return wrong;
  std::vector<Before> record;
  for (const nlohmann::json& entry : *changes) {
    const auto field = [&](const char* key) -> const std::string* {
      const auto found = entry.is_object() ? entry.find(key) : entry.end();
      return found == entry.end() ? nullptr : found->get_ptr<const std::string*>();
    };
    const std::string* const kind = field("kind");
    const std::string* const path = field("path");
    const std::string* const value = field("value");
    const std::string* const before = field("before");
    if (kind == nullptr || path == nullptr || value == nullptr || before == nullptr || !path->starts_with('/')) {
      return wrong;
    }
    const auto& names = kEnumNames<ChangeKind>;
    const auto found = std::find(names.begin(), names.end(), *kind);
    if (found == names.end()) return wrong;
    record.push_back({{static_cast<ChangeKind>(found - names.begin()), *path, *value}, *before});
  }
  return record;
}

Result<void> carry_out(MachineFiles& machine, std::string_view target, const Plan& plan) {
  if (!plan.beforehand.empty()) {
    return environment_error(fmt::format("cannot set up {}", target), "something is needed before it",
                             fmt::format("{}", plan.beforehand.front()));
  }
  const std::string path = record_path(target);
  WARPLINE_TRY(const std::vector<Before> earlier, read_record(machine, path));
  std::vector<Before> record = earlier;
  std::vector<Before> made;
  for (const Change& change : plan.changes) {
    WARPLINE_TRY(std::string before, current(machine, change));
    made.push_back({change, std::move(before)});
    const auto is_known = [&](const Before& known) {
      return known.change.kind == change.kind && known.change.path == change.path;
    };
    if (std::find_if(record.begin(), record.end(), is_known) == record.end()) record.push_back(made.back());
    Result<void> done = machine.write_file(path, to_text(record));
    if (done.ok()) done = apply(machine, change);
    if (done.ok()) continue;
    // What apply() could not do it has put back itself.
    made.pop_back();
    bool all_back = true;
    for (auto last = made.rbegin(); last != made.rend(); ++last) all_back &= put_back(machine, *last).ok();
    if (all_back) {
      static_cast<void>(earlier.empty() ? forget(machine, path) : machine.write_file(path, to_text(earlier)));
    }
    return done;
  }
  return {};
}

Result<std::vector<Before>> undo(MachineFiles& machine, std::string_view target) {
  const std::string path = record_path(target);
  WARPLINE_TRY(std::vector<Before> record, read_record(machine, path));
  std::reverse(record.begin(), record.end());
  for (const Before& before : record) WARPLINE_CHECK(put_back(machine, before));
  if (!record.empty()) WARPLINE_CHECK(forget(machine, path));
  return record;
}

}  // namespace warpline::setup
