// SPDX-License-Identifier: Apache-2.0
#include "selftest/selftest_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "selftest/judge.h"

namespace warpline::selftest {
namespace {

class Run {
 public:
  Run(Kept& kept, const Hooks& hooks) : kept_(kept), hooks_(hooks), before_(std::exchange(kept.results, {})) {}

  Result<void> run() {
    const std::string no_gpu = kept_.subject.gpu ? hooks_.no_gpu() : "";
    std::vector<Step> steps = feature_steps(kept_.subject, no_gpu);
    planned_ = steps.size() + most_searches(steps);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      WARPLINE_TRY(const bool done, result_of(steps[i]));
      if (!done) return give_back();
      if (steps[i].name == kLink && !works(kLink)) {
        kept_.subject.macs = addresses();
        steps = feature_steps(kept_.subject, no_gpu);  // the same up to here
      }
    }
    Best best;
    if (works(link_step(kept_.subject))) {
      WARPLINE_TRY(best, fastest());
      if (stopped_) return give_back();
    }
    kept_.best = std::move(best);
    return hooks_.keep(kept_);
  }

 private:
  /// Returns the steps behind those of features: the default's rate, each alternative's, and those of the best.
  [[nodiscard]] std::size_t searches(std::size_t alternatives) const {
    return 1 + alternatives + steps_at_the_best(kept_.subject, {}).size();
  }
  /// Returns the number of these if all features work that can be tried.
  [[nodiscard]] std::size_t most_searches(const std::vector<Step>& steps) const {
    std::vector<StepResult> all;
    for (const Step& step : steps) {
      if (step.impossible.empty()) all.push_back({.name = step.name, .outcome = Outcome::ok});
    }
    return searches(alternatives(kept_.subject, all).size());
  }

  [[nodiscard]] bool works(const std::string& step) const {
    const StepResult* result = kept_.find(step);
    return result != nullptr && result->outcome == Outcome::ok;
  }

  /// Returns the ports' own addresses, if the step of the link told of them.
  [[nodiscard]] std::vector<std::string> addresses() const {
    std::vector<std::string> macs;
    const Json& found = kept_.find(kLink)->found;
    const auto told = found.is_object() ? found.find("macs") : found.end();
    if (!found.is_object() || told == found.end()) return {};
    for (const Json& mac : *told) {
      if (mac.is_string()) macs.push_back(mac.get<std::string>());
    }
    return macs.size() == kept_.subject.ports.size() ? macs : std::vector<std::string>{};
  }

  /// Returns why a step is not done: the first cause, where what it needs was not done either; empty: it is.
  [[nodiscard]] std::string reason_to_skip(const Step& step) const {
    if (!step.impossible.empty() || step.needs.empty() || works(step.needs)) return step.impossible;
    const StepResult* needed = kept_.find(step.needs);
    if (needed != nullptr && needed->outcome == Outcome::skipped) return needed->why;
    return fmt::format("it needs \"{}\", which {}", step.needs,
                       needed != nullptr && needed->outcome == Outcome::refused ? "was refused" : "failed");
  }

  /// Adds the result of a step, an earlier one's if there is. False: it was stopped.
  Result<bool> result_of(const Step& step) {
    for (const StepResult& earlier : before_) {
      if (earlier.name != step.name) continue;
      kept_.results.push_back(earlier);
      return true;
    }
    if (std::string why = reason_to_skip(step); !why.empty()) {
      return add(
          {.name = step.name, .stage = step.stage, .why = std::move(why), .command = command_line(step.arguments)});
    }
    const double began = hooks_.seconds();
    WARPLINE_TRY(const bench::ChildRun child, hooks_.run(step.arguments, step.limit));
    if (hooks_.stopped()) {
      stopped_ = true;
      return false;
    }
    StepResult result = judge(step, child, hooks_.seconds() - began);
    if (step.stage == Stage::rate) take_rate(result, child);
    if (result.outcome == Outcome::ok && step.stage == Stage::link && !kept_.subject.macs.empty()) {
      StepResult& link = *std::ranges::find(kept_.results, kLink, &StepResult::name);
      link.outcome = Outcome::refused;
      link.why = "frames for other addresses do not come; those of the other steps are for the ports' own";
    }
    return add(std::move(result));
  }

  /// A search verifies its frames trial by trial; what it reports is a table.
  static void take_rate(StepResult& result, const bench::ChildRun& child) {
    if (child.code != 0 || child.timed_out) return;
    const std::optional<double> rate = rate_in(Json::parse(child.output, nullptr, false));
    result.outcome = rate ? Outcome::ok : Outcome::refused;
    result.why = rate ? "" : "no rate without loss was found; leave the machine to the test alone";
    result.found = Json::object();
    if (rate) result.found["frames_per_s"] = *rate;
  }

  Result<bool> add(StepResult result) {
    kept_.seconds += result.seconds;
    kept_.results.push_back(std::move(result));
    hooks_.progress(kept_.results.back(), planned_ - std::min(planned_, kept_.results.size()));
    WARPLINE_CHECK(hooks_.keep(kept_));
    return true;
  }

  Result<Best> fastest() {
    std::optional<Error> error;
    const std::vector<StepResult> features = kept_.results;
    const auto search = [&](const Step& step) -> std::optional<StepResult> {
      Result<bool> done = result_of(step);
      if (!done) error = done.error();
      if (!done || !*done) return std::nullopt;
      return kept_.results.back();
    };
    const std::vector<Alternative> tried = alternatives(kept_.subject, features);
    planned_ = features.size() + searches(tried.size());
    const Best best = find_best(kept_.subject, tried, search);
    if (error) return *error;
    if (stopped_ || best.rate == 0) return best;
    for (const Step& step : steps_at_the_best(kept_.subject, best)) {
      if (!search(step)) break;
    }
    if (error) return *error;
    return best;
  }

  /// What was known of steps that the run did not come to stays known.
  Result<void> give_back() {
    for (StepResult& earlier : before_) {
      if (kept_.find(earlier.name) == nullptr) kept_.results.push_back(std::move(earlier));
    }
    return hooks_.keep(kept_);
  }

  Kept& kept_;
  const Hooks& hooks_;
  std::vector<StepResult> before_;
  std::size_t planned_ = 0;  ///< steps, as far as is known
  bool stopped_ = false;
};

}  // namespace

Result<void> run_selftest(Kept& kept, const Hooks& hooks) { return Run(kept, hooks).run(); }

const StepResult* no_link(const Kept& kept) {
  const StepResult* link = kept.find(link_step(kept.subject));
  if (link != nullptr && link->outcome == Outcome::ok) return nullptr;
  const auto found = std::ranges::find_if(kept.results, [](const StepResult& result) {
    return result.stage == Stage::link && result.outcome != Outcome::ok;
  });
  return found == kept.results.end() ? nullptr : &*found;
}

int exit_code(const Kept& kept) {
  if (const StepResult* link = no_link(kept)) {
    return static_cast<int>(link->outcome == Outcome::refused ? ErrorKind::environment : ErrorKind::peer);
  }
  return kept.count(Outcome::failed) == 0 ? 0 : static_cast<int>(ErrorKind::verification);
}

}  // namespace warpline::selftest
