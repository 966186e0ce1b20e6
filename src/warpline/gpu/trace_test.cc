// SPDX-License-Identifier: Apache-2.0
#include "warpline/gpu/trace.h"

#include <gtest/gtest.h>

namespace warpline::gpu {
namespace {

TEST(Trace, IsOffUntilStartedAndThenMarksWithoutAProfilerToo) {
  EXPECT_FALSE(trace_enabled.load());
  {
    const TraceRange unmarked("rx");
  }
  const auto started = start_tracing();
  EXPECT_EQ(trace_enabled.load(), started.ok());
  if (!started.ok()) {
    EXPECT_EQ(started.error().kind, ErrorKind::environment);
    EXPECT_FALSE(started.error().fix.empty());
  }
  {
    const TraceRange outer("rx");
    const TraceRange inner("publish");
  }
  start_profiler_capture();
  stop_profiler_capture();
  trace_enabled.store(false);
}

}  // namespace
}  // namespace warpline::gpu
