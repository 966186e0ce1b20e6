// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "warpline/port/port_queue.h"

namespace warpline::traffic {

/// When the last of what was given to a transmit queue had really left, by the device's own reports. A device may
/// report every so many descriptors only: what lies behind the last report is left over, by number.
class CompletionWatch {
 public:
  /// `report_every`: descriptors between reports. `patience`: ticks without a report after which none is waited for.
  CompletionWatch(std::uint32_t report_every, std::uint64_t patience)
      : report_every_(report_every == 0 ? 1 : report_every), patience_(patience) {}

  /// `behind`: descriptors given and not reported; nullopt: the driver does not tell. Returns true when there is
  /// nothing to wait for any more. Nothing is given to the queue after the first call.
  bool observe(std::optional<std::uint32_t> behind, std::uint64_t now) {
    if (!behind) return true;
    if (!behind_ || *behind < *behind_) {
      behind_ = behind;
      last_report_ = now;
    }
    return *behind_ < report_every_ || now - last_report_ > patience_;
  }

  /// False if the driver does not tell.
  [[nodiscard]] bool known() const { return behind_.has_value(); }
  /// Ticks at which the last report was seen.
  [[nodiscard]] std::uint64_t last_report() const { return last_report_; }
  /// Descriptors that are not reported.
  [[nodiscard]] std::uint32_t unreported() const { return behind_.value_or(0); }

 private:
  std::uint32_t report_every_;
  std::uint64_t patience_;
  std::optional<std::uint32_t> behind_;
  std::uint64_t last_report_ = 0;
};

/// Descriptors between the device's reports of a transmit queue, where the driver tells; else 1.
[[nodiscard]] std::uint32_t report_interval(port::PortQueue queue);

/// Descriptors of a transmit queue that the device has not reported to have sent; their buffers are freed as far as the
/// driver can. nullopt: the driver tells neither. By the queue's owner.
[[nodiscard]] std::optional<std::uint32_t> descriptors_behind(port::PortQueue queue);

}  // namespace warpline::traffic
