// SPDX-License-Identifier: Apache-2.0
#include "selftest/tuning.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

namespace warpline::selftest {
namespace {

/// A search is exact to so much; a gain must be more.
constexpr double kWidth = 0.05;
constexpr double kLightLoad = 0.1;

bool is_number(std::string_view text) { return text.find_first_not_of("0123456789") == std::string_view::npos; }

std::string toml_string(std::string_view text) {
  std::string literal = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') literal += '\\';
    literal += c;
  }
  return literal + '"';
}

std::vector<std::string> flags_of(const Configuration& configuration) {
  std::vector<std::string> words;
  for (const Choice& choice : configuration) words.insert(words.end(), {choice.flag(), choice.value});
  return words;
}

}  // namespace

std::vector<Alternative> alternatives(const Subject& subject, const std::vector<StepResult>& results) {
  const std::string gpu = std::to_string(subject.gpu.value_or(0));
  std::vector<Alternative> all = {
      {{{"forward", "burst", "32"}}, subject.quick ? "forward" : "burst 32"},
      {{{"forward", "burst", "256"}}, "burst 256"},
      {{{"ingest", "batch", "32"}}, "batch 32"},
      {{{"ingest", "batch", "256"}}, "batch 256"},
      {{{"forward", "recycle", "fast-free"}}, "recycle fast-free"},
      {{{"forward", "recycle", "cache"}}, "recycle cache"},
      {{{"forward", "recycle", "direct"}}, "recycle direct"},
      {{{"forward", "pipelines", "2"}}, "pipelines 2"},
      {{{"forward", "pipelines", "4"}}, "pipelines 4"},
      {{{subject.ports.size() > 1 ? "forward" : "ingest", "engine", "thread"}}, "engine thread"},
      {{{"forward", "engine", "persistent"}, {"forward", "gpu", gpu}, {"pool", "memory", "pinned"}},
       "pinned memory, engine persistent"},
      {{{"forward", "engine", "persistent"}, {"forward", "gpu", gpu}, {"pool", "memory", "device"}},
       "GPU memory, engine persistent"},
  };
  std::erase_if(all, [&](const Alternative& one) {
    return std::ranges::none_of(results, [&](const StepResult& result) {
      return result.name == one.shown_by && result.outcome == Outcome::ok;
    });
  });
  return all;
}

Configuration changed(Configuration base, const Configuration& changes) {
  for (const Choice& change : changes) {
    std::erase_if(base,
                  [&](const Choice& choice) { return choice.section == change.section && choice.key == change.key; });
    base.push_back(change);
  }
  return base;
}

std::string name_of(const Configuration& configuration) {
  return configuration.empty() ? "defaults" : fmt::format("{}", fmt::join(flags_of(configuration), " "));
}

Step rate_step(const Subject& subject, const Configuration& configuration, const std::string& size) {
  // The search splits the command line again, as a shell does.
  std::vector<std::string> run = verified_run(subject, flags_of(configuration));
  run.insert(run.end(), {"--share-cores", "--flows", "256"});
  if (!size.empty()) run.insert(run.end(), {"--size", size});
  std::string of = command_line(with_common(subject, std::move(run)));
  of = of.substr(of.find(' ') + 1);
  Step step{.name = size.empty() ? fmt::format("rate: {}", name_of(configuration))
                                 : fmt::format("rate with frames of {}", size),
            .stage = Stage::rate,
            .arguments = {"bench", "rate", "--of", of, "--loss-ratio", "0", "--width", std::to_string(kWidth)},
            .needs = "",
            .asked = "",
            .limit = {subject.quick ? 60'000'000'000 : 180'000'000'000}};
  const char* trial = subject.quick ? "100ms" : "500ms";
  const char* sum = subject.quick ? "200ms" : "2s";
  step.arguments.insert(step.arguments.end(), {"--initial-trial-duration", trial, "--final-trial-duration", trial,
                                               "--duration-sum", sum, "--json"});
  return step;
}

std::optional<double> rate_in(const Json& json) {
  const Json* value = &json;
  const auto into = [&](const auto& key) {
    if (value == nullptr) return;
    if constexpr (std::is_integral_v<std::decay_t<decltype(key)>>) {
      value = value->is_array() && value->size() > key ? &(*value)[key] : nullptr;
    } else {
      const auto found = value->is_object() ? value->find(key) : value->end();
      value = value->is_object() && found != value->end() ? &*found : nullptr;
    }
  };
  into("table");
  into("rows");
  into(std::size_t{0});
  into("columns");
  into("NDR");
  const Json* result = value;
  for (const char* key : {"conditional_throughput", "relevant_lower_bound"}) {
    value = result;
    into(key);
    if (value != nullptr && value->is_number() && value->template get<double>() > 0) return value->get<double>();
  }
  return std::nullopt;
}

std::optional<double> rate_of(const StepResult& result) {
  if (result.outcome != Outcome::ok || !result.found.is_object()) return std::nullopt;
  const auto found = result.found.find("frames_per_s");
  if (found == result.found.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

Best find_best(const Subject& subject, const std::vector<Alternative>& tried,
               const std::function<std::optional<StepResult>(const Step&)>& search) {
  Best best;
  const auto measure = [&](const Configuration& configuration) {
    const std::optional<StepResult> result = search(rate_step(subject, configuration));
    const std::optional<double> rate = result ? rate_of(*result) : std::nullopt;
    if (rate && *rate > best.rate * (1 + kWidth)) best = {configuration, *rate};
    return result.has_value();
  };
  if (!measure({})) return best;
  for (const Alternative& one : tried) {
    if (!measure(changed(best.configuration, one.changes))) break;
  }
  return best;
}

std::vector<Step> steps_at_the_best(const Subject& subject, const Best& best) {
  std::vector<Step> steps;
  for (const char* size : {"512", "1514"}) {
    if (!subject.quick) steps.push_back(rate_step(subject, best.configuration, size));
  }
  std::vector<std::string> more = flags_of(best.configuration);
  more.insert(more.end(),
              {"--share-cores", "--flows", "256", "--rate", fmt::format("{:.0f}pps", best.rate * kLightLoad),
               "--seconds", subject.quick ? "1" : "5", "--json"});
  steps.push_back({.name = "latency at a tenth of the rate",
                   .stage = Stage::latency,
                   .arguments = with_common(subject, verified_run(subject, more)),
                   .needs = "",
                   .asked = ""});
  return steps;
}

std::string to_toml(const Subject& subject, const Best& best) {
  std::map<std::string, std::string> sections;
  for (const Choice& choice : best.configuration) {
    sections[choice.section] +=
        fmt::format("{} = {}\n", choice.key, is_number(choice.value) ? choice.value : toml_string(choice.value));
  }
  if (!subject.hugepages) sections["runtime"] += "no-hugepages = true\n";
  std::string text =
      fmt::format("# By warpline selftest: {}.\n# warpline {} --config THIS_FILE\n",
                  best.rate == 0 ? std::string("no rate was found, so these are the defaults")
                                 : fmt::format("{:.4g} million frames a second, each verified", best.rate / 1e6),
                  subject.ports.size() > 1 ? "forward" : "ingest");
  for (const auto& [section, lines] : sections) {
    if (!lines.empty()) text += fmt::format("\n[{}]\n{}", section, lines);
  }
  for (const std::string& port : subject.ports) text += fmt::format("\n[[port]]\nspec = {}\n", toml_string(port));
  return text;
}

}  // namespace warpline::selftest
