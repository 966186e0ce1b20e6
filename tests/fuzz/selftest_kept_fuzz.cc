// SPDX-License-Identifier: Apache-2.0
// What `selftest` reads: the file that it goes on with, and what a run of the program printed.
#include <cstddef>
#include <cstdint>
#include <string>

#include "selftest/judge.h"
#include "selftest/kept.h"
#include "selftest/tuning.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace warpline;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const selftest::Subject subject{.ports = {"a", "b"}, .gpu = {}};
  if (const auto kept = selftest::unfinished(text, subject, "1")) {
    (void)selftest::to_text(*kept);
    (void)selftest::to_json(*kept, selftest::Json::object());
  }
  (void)selftest::rate_in(selftest::Json::parse(text, nullptr, false));
  for (const int code : {0, 3, 4, 139}) {
    const selftest::StepResult result = selftest::judge(
        {.name = "s", .stage = selftest::Stage::frames, .arguments = {"generate"}, .needs = "", .asked = "x"},
        {.code = code, .timed_out = false, .output = text, .errors = text}, 1);
    (void)selftest::rate_of(result);
  }
  return 0;
}
