// SPDX-License-Identifier: Apache-2.0
#include "selftest/selftest_run.h"

#include <fmt/format.h>

#include <utility>

#include "selftest/judge.h"

namespace warpline::selftest {
namespace {

class Run {
 public:
  Run(Kept& kept, const Hooks& hooks) : kept_(kept), hooks_(hooks), before_(std::exchange(kept.results, {})) {}

  Result<void> run() {
    for (const Step& step : feature_steps(kept_.subject)) {
      WARPLINE_TRY(const bool done, result_of(step));
      if (!done) return give_back();
    }
    Best best;
    if (works("link")) {
      WARPLINE_TRY(best, fastest());
      if (stopped_) return give_back();
    }
    kept_.best = std::move(best);
    return hooks_.keep(kept_);
  }

 private:
  [[nodiscard]] bool works(const std::string& step) const {
    const StepResult* result = kept_.find(step);
    return result != nullptr && result->outcome == Outcome::ok;
  }

  /// Adds the result of a step, an earlier one's if there is. False: it was stopped.
  Result<bool> result_of(const Step& step) {
    for (StepResult& earlier : before_) {
      if (earlier.name != step.name) continue;
      kept_.results.push_back(earlier);
      return true;
    }
    if (!step.needs.empty() && !works(step.needs)) {
      StepResult skipped{.name = step.name, .stage = step.stage, .command = command_line(step.arguments)};
      skipped.why = fmt::format("it needs what is not there: {}", step.needs);
      return add(std::move(skipped));
    }
    const double began = hooks_.seconds();
    WARPLINE_TRY(const bench::ChildRun child, hooks_.run(step.arguments, step.limit));
    if (hooks_.stopped()) {
      stopped_ = true;
      return false;
    }
    StepResult result = judge(step, child, hooks_.seconds() - began);
    if (step.stage == Stage::rate) take_rate(result, child);
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
    hooks_.progress(kept_.results.back());
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
    const Best best = find_best(kept_.subject, alternatives(kept_.subject, features), search);
    if (error) return *error;
    if (stopped_ || best.rate == 0) return best;
    (void)search(latency_step(kept_.subject, best.configuration, best.rate));
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
  bool stopped_ = false;
};

}  // namespace

Result<void> run_selftest(Kept& kept, const Hooks& hooks) { return Run(kept, hooks).run(); }

int exit_code(const Kept& kept) {
  const StepResult* link = kept.find("link");
  if (link != nullptr && link->outcome == Outcome::refused) return static_cast<int>(ErrorKind::environment);
  if (link != nullptr && link->outcome == Outcome::failed) return static_cast<int>(ErrorKind::peer);
  return kept.count(Outcome::failed) == 0 ? 0 : static_cast<int>(ErrorKind::verification);
}

}  // namespace warpline::selftest
