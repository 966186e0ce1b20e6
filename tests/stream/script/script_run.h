// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "script.h"
#include "script_wire.h"

namespace warpline::stream_script {

/// What a script is run against. Times count from the script's beginning.
class Subject {
 public:
  virtual ~Subject() = default;

  /// True if times, windows and every single acknowledgement are as the script says; else only what RFCs leave no
  /// choice in is.
  [[nodiscard]] virtual bool is_exact() const = 0;
  [[nodiscard]] virtual Audience audience() const = 0;
  [[nodiscard]] virtual Nanos now() const = 0;
  /// Lets time pass.
  virtual void wait_until(Nanos time) = 0;
  /// Hands a frame to the receiver.
  virtual void inject(FrameBytes frame) = 0;
  /// Returns the next frame that it sends up to then; time passes until it does.
  [[nodiscard]] virtual std::optional<FrameBytes> receive(Nanos until) = 0;
  /// Does what the application does. Returns what was not as it should be, or an empty string.
  [[nodiscard]] virtual std::string act(const Action& action) = 0;
};

/// Runs a script. Returns what was not as it says, with the line, or an empty string.
[[nodiscard]] std::string run_script(const Script& script, Subject& subject);

}  // namespace warpline::stream_script
