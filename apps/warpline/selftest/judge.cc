// SPDX-License-Identifier: Apache-2.0
#include "selftest/judge.h"

#include <fmt/format.h>

#include <string_view>

#include "selftest/plan.h"
#include "warpline/base/result.h"

namespace warpline::selftest {
namespace {

constexpr int kSignalled = 128;

/// The last line that a program wrote, without its name.
std::string last_line(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  const auto begin = text.rfind('\n');
  if (begin != std::string_view::npos) text.remove_prefix(begin + 1);
  constexpr std::string_view kName = "warpline: ";
  if (text.starts_with(kName)) text.remove_prefix(kName.size());
  return text.empty() ? "it says nothing" : std::string(text);
}

/// A member that is there, or null.
const Json& member(const Json& object, std::string_view key) {
  static const Json null;
  if (!object.is_object()) return null;
  const auto found = object.find(key);
  return found == object.end() ? null : *found;
}

/// The line of a report that says that `asked` was refused; "" if none does.
std::string refusal(const Json& report, const std::string& asked) {
  if (asked.empty()) return "";
  for (const Json& line : member(report, "refused_offloads")) {
    if (line.is_string() && line.get_ref<const std::string&>().ends_with(asked)) return line.get<std::string>();
  }
  return "";
}

/// How many packets each queue received, where a report says so.
Json queue_packets(const Json& report) {
  Json counts = Json::array();
  for (const Json& queue : member(report, "queues")) {
    const Json& packets = member(member(queue, "rx"), "packets");
    if (packets.is_number()) counts.push_back(packets);
  }
  return counts;
}

Json figures_of(const Json& report) {
  Json found = Json::object();
  for (const char* key : {"verify", "rate", "latency_ns", "drops", "cycles_per_packet", "recycle", "refused_offloads",
                          "notes", "checks", "gpu"}) {
    const Json& value = member(report, key);
    if (!value.is_null() && !(value.is_structured() && value.empty())) found[key] = value;
  }
  for (const Json& port : member(report, "ports")) {
    if (const Json& mac = member(port, "mac"); mac.is_string()) found["macs"].push_back(mac);
  }
  if (Json counts = queue_packets(report); !counts.empty()) found["queue_packets"] = std::move(counts);
  return found;
}

bool all_verified(const Json& report) {
  const Json& checked = member(member(report, "verify"), "checked");
  return checked.is_number_unsigned() && checked.get<std::uint64_t>() != 0;
}

/// Says what to do about a machine that `doctor` finds lacking.
std::string first_missing(const Json& report) {
  for (const Json& check : member(report, "checks")) {
    if (member(check, "health") != "missing") continue;
    const Json &found = member(check, "found"), &fix = member(check, "fix");
    return fmt::format("{}{}{}", found.is_string() ? found.get<std::string>() : "", fix.is_string() ? "; " : "",
                       fix.is_string() ? fix.get<std::string>() : "");
  }
  return "";
}

}  // namespace

StepResult judge(const Step& step, const bench::ChildRun& run, double seconds) {
  StepResult result{.name = step.name,
                    .stage = step.stage,
                    .outcome = Outcome::failed,
                    .why = "",
                    .command = command_line(step.arguments),
                    .seconds = seconds,
                    .found = Json::object()};
  const Json report = Json::parse(run.output, nullptr, false);
  if (report.is_object()) result.found = figures_of(report);
  if (run.timed_out) {
    result.why = fmt::format("it hung, and was ended after {:.0f} s: {}", seconds, last_line(run.errors));
  } else if (run.code > kSignalled) {
    result.why = fmt::format("signal {} ended it: {}", run.code - kSignalled, last_line(run.errors));
  } else if (run.code == static_cast<int>(ErrorKind::usage) || run.code == static_cast<int>(ErrorKind::environment)) {
    const std::string missing = step.stage == Stage::machine ? first_missing(report) : "";
    result.outcome = Outcome::refused;
    result.why = missing.empty() ? last_line(run.errors) : missing;
  } else if (run.code == static_cast<int>(ErrorKind::verification)) {
    const Json& verify = member(report, "verify");
    const bool nothing_came = step.stage == Stage::link && member(verify, "checked") == 0;
    if (nothing_came) {
      result.why = "nothing that one port sends comes to the other; check which ports the cable joins";
    } else {
      result.why =
          verify.is_null() ? last_line(run.errors) : fmt::format("not all came as it was sent: {}", verify.dump());
    }
  } else if (run.code != 0) {
    result.why = last_line(run.errors);
  } else if (!report.is_object()) {
    result.why = "it ended well, and reported nothing";
  } else if (step.stage != Stage::machine && !all_verified(report)) {
    result.why = "nothing was verified";
  } else if (std::string refused = refusal(report, step.asked); !refused.empty()) {
    result.outcome = Outcome::refused;
    result.why = std::move(refused);
  } else {
    result.outcome = Outcome::ok;
  }
  return result;
}

}  // namespace warpline::selftest
