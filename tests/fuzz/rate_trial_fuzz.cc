// SPDX-License-Identifier: Apache-2.0
// Any bytes as a command line and as the report of a trial: words or an error, a trial that loses no more than it sent
// or an error.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "rate/command_words.h"
#include "rate/trial_report.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using warpline::rate::LoadSource;
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto words = warpline::rate::split_words(text); words.ok()) {
    std::size_t letters = 0;
    for (const std::string& word : *words) letters += word.size();
    if (letters > size || words->size() > size) std::abort();
  }
  const warpline::rate::TrialInput trial{.load = 1e6, .duration = warpline::rate::kTrialSecond};
  for (const LoadSource source : {LoadSource::generator, LoadSource::wire, LoadSource::client}) {
    const auto report = warpline::rate::read_trial_report(text, source, trial.duration);
    if (!report.ok()) {
      if (report.error().what.empty() || report.error().why.empty()) std::abort();
      continue;
    }
    const warpline::rate::TrialOutput output = report->output(trial, 2);
    if (output.lost > output.expected || output.expected == 0) std::abort();
    if (!(output.loss_ratio() >= 0 && output.loss_ratio() <= 1)) std::abort();
  }
  return 0;
}
