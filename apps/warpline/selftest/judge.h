// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/child_run.h"
#include "selftest/step.h"

namespace warpline::selftest {

/// Returns what came of a step, by how its run ended and what it reported. Pure: it takes whatever a program may print.
[[nodiscard]] StepResult judge(const Step& step, const bench::ChildRun& run, double seconds);

}  // namespace warpline::selftest
