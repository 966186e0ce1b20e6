// SPDX-License-Identifier: Apache-2.0
#include "selftest/kept.h"

#include <fmt/format.h>

#include <algorithm>

namespace warpline::selftest {
namespace {

Json subject_json(const Subject& subject) {
  Json json = {
      {"ports", subject.ports}, {"mtu", subject.mtu}, {"quick", subject.quick}, {"hugepages", subject.hugepages}};
  if (subject.gpu) json["gpu"] = *subject.gpu;
  return json;
}

template <typename E>
std::optional<E> named(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return std::nullopt;
  const auto place = std::ranges::find(kEnumNames<E>, found->get_ref<const std::string&>());
  if (place == kEnumNames<E>.end()) return std::nullopt;
  return static_cast<E>(place - kEnumNames<E>.begin());
}

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<StepResult> result_of(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  const auto stage = named<Stage>(json, "stage");
  const auto outcome = named<Outcome>(json, "outcome");
  if (!stage || !outcome) return std::nullopt;
  const auto seconds = json.find("seconds");
  const auto found = json.find("found");
  return StepResult{.name = text_of(json, "name"),
                    .stage = *stage,
                    .outcome = *outcome,
                    .why = text_of(json, "why"),
                    .command = text_of(json, "command"),
                    .seconds = seconds != json.end() && seconds->is_number() ? seconds->get<double>() : 0,
                    .found = found != json.end() ? *found : Json::object()};
}

Json result_json(const StepResult& result) {
  Json json = {{"name", result.name}, {"stage", name(result.stage)}, {"outcome", name(result.outcome)}};
  if (!result.why.empty()) json["why"] = result.why;
  json["seconds"] = result.seconds;
  json["command"] = result.command;
  if (!result.found.empty()) json["found"] = result.found;
  return json;
}

Json best_json(const Best& best) {
  Json choices = Json::object();
  for (const Choice& choice : best.configuration) choices[choice.section + "." + choice.key] = choice.value;
  return {{"frames_per_s", best.rate}, {"differs_from_defaults", choices}};
}

void add_once(std::vector<std::string>& lines, std::string line) {
  if (std::ranges::find(lines, line) == lines.end()) lines.push_back(std::move(line));
}

}  // namespace

const StepResult* Kept::find(const std::string& step) const {
  const auto found = std::ranges::find(results, step, &StepResult::name);
  return found == results.end() ? nullptr : &*found;
}

std::size_t Kept::count(Outcome outcome) const {
  return static_cast<std::size_t>(std::ranges::count(results, outcome, &StepResult::outcome));
}

Json kept_json(const Kept& kept, const Json& head) {
  Json json = {{"schema_version", 1}, {"command", "selftest"}};
  json.update(head);
  json["version"] = kept.version;
  json["subject"] = subject_json(kept.subject);
  json["complete"] = kept.best.has_value();
  json["duration_s"] = kept.seconds;
  Json counts = Json::object();
  for (const Outcome outcome : {Outcome::ok, Outcome::refused, Outcome::failed, Outcome::skipped}) {
    counts[std::string(name(outcome))] = kept.count(outcome);
  }
  json["steps_by_outcome"] = counts;
  json["advice"] = advice(kept);
  if (kept.best) json["best"] = best_json(*kept.best);
  json["steps"] = Json::array();
  for (const StepResult& result : kept.results) json["steps"].push_back(result_json(result));
  return json;
}

std::optional<Kept> unfinished(const std::string& text, const Subject& subject, const std::string& version) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || text_of(json, "command") != "selftest" || text_of(json, "version") != version) return {};
  const auto same = json.find("subject"), complete = json.find("complete"), steps = json.find("steps");
  if (same == json.end() || *same != subject_json(subject)) return {};
  if (complete == json.end() || *complete != false || steps == json.end() || !steps->is_array()) return {};
  Kept kept{.subject = subject, .version = version, .results = {}, .best = {}, .seconds = 0};
  for (const Json& step : *steps) {
    std::optional<StepResult> result = result_of(step);
    if (!result) return {};
    // What was left out, or went wrong, may have been mended since; and each part looks at what it leaves.
    const bool again = result->outcome == Outcome::skipped || result->outcome == Outcome::failed;
    if (again || result->stage == Stage::left) continue;
    kept.seconds += result->seconds;
    kept.results.push_back(*std::move(result));
  }
  return kept;
}

std::vector<std::string> advice(const Kept& kept) {
  std::vector<std::string> lines;
  for (const StepResult& result : kept.results) {
    if (!result.found.is_object()) continue;
    for (const char* key : {"checks", "notes"}) {
      const auto found = result.found.find(key);
      if (found == result.found.end()) continue;
      for (const Json& one : *found) {
        if (one.is_string()) {
          add_once(lines, one.get<std::string>());
        } else if (one.is_object() && !text_of(one, "fix").empty() && text_of(one, "health") != "ok") {
          add_once(lines, fmt::format("{}: {}; {}", text_of(one, "name"), text_of(one, "found"), text_of(one, "fix")));
        }
      }
    }
  }
  return lines;
}

std::string to_text(const Kept& kept) {
  std::string text;
  for (auto at = kept.results.begin(); at != kept.results.end(); ++at) {
    const StepResult& result = *at;
    if (result.outcome == Outcome::skipped) {
      const auto same = [&](const StepResult& one) { return one.outcome == result.outcome && one.why == result.why; };
      const auto last = std::find_if_not(at, kept.results.end(), same);
      text += last - at == 1
                  ? fmt::format("{:<9} skipped  {}\n", name(result.stage), result.name)
                  : fmt::format("{:<9} skipped  {} steps from {} on\n", name(result.stage), last - at, result.name);
      text += fmt::format("{:<18} -> {}\n", "", result.why);
      at = last - 1;
      continue;
    }
    text += fmt::format("{:<9} {:<8} {:<40} {:>6.1f} s", name(result.stage), name(result.outcome), result.name,
                        result.seconds);
    if (const std::optional<double> rate = rate_of(result)) text += fmt::format("  {:.4g} Mpps", *rate / 1e6);
    text += '\n';
    if (!result.why.empty()) text += fmt::format("{:<18} -> {}\n", "", result.why);
  }
  for (const std::string& line : advice(kept)) text += fmt::format("to do: {}\n", line);
  text += fmt::format("{} ok, {} refused, {} failed, {} skipped in {:.0f} s\n", kept.count(Outcome::ok),
                      kept.count(Outcome::refused), kept.count(Outcome::failed), kept.count(Outcome::skipped),
                      kept.seconds);
  return text;
}

}  // namespace warpline::selftest
