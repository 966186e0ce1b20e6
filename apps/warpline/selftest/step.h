// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "warpline/base/enum_names.h"
#include "warpline/base/units.h"

namespace warpline::selftest {

/// `Json` keeps the order of members.
using Json = nlohmann::ordered_json;

/// What a step is about, from the safest to the fastest.
enum class Stage : std::uint8_t {
  machine,
  link,
  frames,
  offloads,
  queues,
  datapath,
  buffers,
  gpu,
  ingest,
  rate,
  latency,
  left
};
constexpr auto names_of(Stage) {
  return enum_names<Stage>({"machine", "link", "frames", "offloads", "queues", "datapath", "buffers", "gpu", "ingest",
                            "rate", "latency", "left"});
}

/// What came of a step.
enum class Outcome : std::uint8_t {
  ok,       ///< it was done, and every frame verified
  refused,  ///< the device, the machine or the program says that it cannot be had, and why
  failed,   ///< frames were lost or wrong, the program crashed or hung
  skipped,  ///< what it needs does not work
};
constexpr auto names_of(Outcome) { return enum_names<Outcome>({"ok", "refused", "failed", "skipped"}); }

/// `Step` is one run of this program.
struct Step {
  std::string name;                    ///< unique in a plan: "mtu 9000"
  Stage stage = Stage::machine;        ///< what it is about
  std::vector<std::string> arguments;  ///< of the program, without its name
  std::string needs;                   ///< the name of a step before it that has to have come out ok; empty: none
  std::string asked;                   ///< an offload that the report must not say was refused; empty: none
  std::string impossible{};            ///< why it is not done at all; empty: it is
  Nanos limit{60'000'000'000};         ///< after which the run hangs
};

/// `StepResult` is what came of one.
struct StepResult {
  std::string name{};                  ///< of the step
  Stage stage = Stage::machine;        ///< of the step
  Outcome outcome = Outcome::skipped;  ///< what came of it
  std::string why{};                   ///< of all but ok: one line, with what to do; of ok empty
  std::string command{};               ///< the command line that does it again
  double seconds = 0;                  ///< that it took
  Json found = Json::object();         ///< figures of it; may be empty
};

}  // namespace warpline::selftest
