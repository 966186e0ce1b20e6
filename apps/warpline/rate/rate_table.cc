// SPDX-License-Identifier: Apache-2.0
// The searches of `bench rate` as JSON and as Markdown.
#include <fmt/format.h>

#include "rate/rate_run.h"
#include "warpline/base/statistics/run_totals.h"
#include "warpline/base/units.h"

namespace warpline::rate {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kTitle = "highest rate without loss, or with little: MLRsearch (RFC 9971)";

double seconds_of(Nanos time) { return static_cast<double>(time.value) / 1e9; }

const char* name_of(Regularity regularity) {
  switch (regularity) {
    case Regularity::regular:
      return "regular";
    case Regularity::max_load_is_lower_bound:
      return "irregular: the largest load is a lower bound";
    case Regularity::min_load_is_upper_bound:
      return "irregular: the smallest load is an upper bound";
    case Regularity::unfinished:
      return "irregular: the search was ended before";
  }
  return "";
}

Json goal_json(const SearchGoal& goal) {
  return {{"name", goal_name(goal)},
          {"loss_ratio", goal.loss_ratio},
          {"exceed_ratio", goal.exceed_ratio},
          {"width", goal.width},
          {"initial_trial_duration_s", seconds_of(goal.initial_trial_duration)},
          {"final_trial_duration_s", seconds_of(goal.final_trial_duration)},
          {"duration_sum_s", seconds_of(goal.duration_sum)}};
}

Json result_json(const GoalResult& result) {
  Json json = {{"regular", result.regularity == Regularity::regular}, {"regularity", name_of(result.regularity)}};
  if (result.relevant_lower_bound) json["relevant_lower_bound"] = *result.relevant_lower_bound;
  if (result.relevant_upper_bound) json["relevant_upper_bound"] = *result.relevant_upper_bound;
  if (result.conditional_throughput) json["conditional_throughput"] = *result.conditional_throughput;
  return json;
}

Json trial_json(const RateTrial& trial) {
  Json json = {{"load", trial.result.input.load},
               {"duration_s", seconds_of(trial.result.input.duration)},
               {"expected", trial.result.output.expected},
               {"lost", trial.result.output.lost},
               {"loss_ratio", trial.result.output.loss_ratio()},
               {"sent", trial.report.sent},
               {"delivered", trial.report.delivered},
               {"offered_per_s", trial.report.offered_per_s},
               {"drops", trial.report.drops}};
  if (!trial.report.verify.is_null()) json["verify"] = trial.report.verify;
  if (!trial.report.latency_ns.is_null()) json["latency_ns"] = trial.report.latency_ns;
  return json;
}

/// Gbit/s of frames with FCS, preamble and gap at so many frames a second; empty where the frames' size is unknown.
std::string layer1_text(const RateRow& row, double per_second) {
  if (row.trials.empty() || row.trials.front().report.frame_bytes == 0) return "";
  const double bits = 8 * (row.trials.front().report.frame_bytes + static_cast<double>(kLayer1Overhead));
  return fmt::format("{:.3f}", per_second * bits / 1e9);
}

std::string load_text(const std::optional<double>& load) { return load ? fmt::format("{:.6g}", *load / 1e6) : ""; }

}  // namespace

Json RateTable::to_json() const {
  Json json = {{"name", "rate"}, {"title", kTitle}, {"of", of}};
  json["unit"] = source == LoadSource::client ? "requests per second" : "frames per second of one port";
  json["interfaces"] = interfaces;
  json["offered_tolerance"] = kOfferedTolerance;
  json["min_load"] = min_load;
  json["max_load"] = max_load;
  json["goals"] = Json::array();
  for (const SearchGoal& goal : goals) json["goals"].push_back(goal_json(goal));
  json["rows"] = Json::array();
  for (const RateRow& row : rows) {
    Json entry = Json::object();
    if (row.size) entry["size"] = *row.size;
    entry["columns"] = Json::object();
    for (std::size_t i = 0; i < row.results.size(); ++i) {
      entry["columns"][goal_name(goals[i])] = result_json(row.results[i]);
    }
    if (row.failure) entry["failure"] = row.failure->message();
    entry["trials"] = Json::array();
    for (const RateTrial& trial : row.trials) entry["trials"].push_back(trial_json(trial));
    json["rows"].push_back(std::move(entry));
  }
  json["notes"] = notes;
  return json;
}

std::string RateTable::to_markdown() const {
  std::string text =
      fmt::format("{}, of: warpline {}\nM{}, in trials of {} to {}.\n\n", kTitle, of,
                  source == LoadSource::client ? "illion requests per second" : "illion frames per second of one port",
                  to_string(goals.front().initial_trial_duration), to_string(goals.front().final_trial_duration));
  text +=
      "| frame | goal | relevant lower bound | relevant upper bound | conditional throughput | Gbit/s (layer 1) | "
      "trials "
      "| result |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n";
  for (const RateRow& row : rows) {
    for (std::size_t i = 0; i < row.results.size(); ++i) {
      const GoalResult& result = row.results[i];
      text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} |\n", row.size ? fmt::format("{} B", *row.size) : "",
                          goal_name(goals[i]), load_text(result.relevant_lower_bound),
                          load_text(result.relevant_upper_bound), load_text(result.conditional_throughput),
                          result.conditional_throughput ? layer1_text(row, *result.conditional_throughput) : "",
                          row.trials.size(), name_of(result.regularity));
    }
  }
  text += "\n";
  for (const std::string& note : notes) text += fmt::format("- {}\n", note);
  for (const RateRow& row : rows) {
    if (row.failure) text += fmt::format("- {}\n", row.failure->message());
  }
  return text;
}

}  // namespace warpline::rate
