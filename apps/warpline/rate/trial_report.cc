// SPDX-License-Identifier: Apache-2.0
#include "rate/trial_report.h"

#include <fmt/format.h>

#include <algorithm>

namespace warpline::rate {
namespace {

using PlainJson = nlohmann::json;

/// More than any trial can be asked for: what rounding to whole frames still holds.
constexpr double kMostFrames = 1e18;

std::uint64_t number(const PlainJson& object, const char* key) { return object.value(key, std::uint64_t{0}); }

std::uint64_t packets(const PlainJson& report, const char* key) {
  return number(report.value(key, PlainJson::object()), "packets");
}

std::uint64_t sum(const PlainJson& counts) {
  std::uint64_t total = 0;
  for (const auto& [reason, count] : counts.items()) total += count.get<std::uint64_t>();
  return total;
}

/// What the command's own generator sent, and its checker found good.
void read_generator(const PlainJson& report, TrialReport& trial) {
  trial.sent = packets(report, "generated");
  trial.delivered = packets(report, "delivered");
  if (trial.sent != 0) {
    trial.frame_bytes = static_cast<double>(number(report.at("generated"), "bytes")) / static_cast<double>(trial.sent);
  }
  for (const PlainJson& queue : report.value("queues", PlainJson::array())) {
    if (queue.contains("tx")) trial.offered_per_s += queue["tx"].at("pps").get<double>();
  }
}

/// What software NICs supplied: received, or lost before that.
void read_wire(const PlainJson& report, Nanos duration, TrialReport& trial) {
  std::uint64_t lost = sum(trial.drops) + number(report, "in_flight");
  trial.sent = packets(report, "rx");
  for (const PlainJson& port : report.value("ports", PlainJson::array())) {
    const std::uint64_t unseen = number(port, "missed") + number(port, "nombuf");
    if (unseen != 0) trial.drops[port.at("name").get<std::string>() + " missed"] = unseen;
    trial.sent += unseen;
    lost += unseen;
  }
  trial.delivered = trial.sent - std::min(trial.sent, lost);
  trial.offered_per_s = static_cast<double>(trial.sent) * 1e9 / static_cast<double>(duration.value);
  const PlainJson rx = report.value("rx", PlainJson::object());
  if (number(rx, "packets") != 0) {
    trial.frame_bytes = static_cast<double>(number(rx, "bytes")) / static_cast<double>(number(rx, "packets"));
  }
}

void read_client(const PlainJson& report, TrialReport& trial) {
  const PlainJson requests = report.value("requests", PlainJson::object());
  trial.sent = number(requests, "submitted");
  trial.delivered = number(requests, "ok");
  trial.offered_per_s = report.value("rate", PlainJson::object()).value("offered_per_s", 0.0);
}

Result<TrialReport> read_object(const PlainJson& report, LoadSource source, Nanos duration) {
  TrialReport trial;
  trial.drops = report.value("drops", PlainJson::object());
  trial.verify = report.value("verify", PlainJson());
  trial.latency_ns = report.value("latency_ns", PlainJson());
  const Error unverified{ErrorKind::verification, "a trial failed its verification", {}, "run its command alone"};
  if (!report.at("conserved").get<bool>()) {
    Error error = unverified;
    error.why = "frames or requests are unaccounted for";
    return error;
  }
  if (!trial.verify.is_null() && number(trial.verify, "bad") + number(trial.verify, "duplicated") != 0) {
    Error error = unverified;
    error.why = fmt::format("{} came back other than they were sent, {} came twice", number(trial.verify, "bad"),
                            number(trial.verify, "duplicated"));
    return error;
  }
  switch (source) {
    case LoadSource::generator:
      read_generator(report, trial);
      break;
    case LoadSource::wire:
      read_wire(report, duration, trial);
      break;
    case LoadSource::client:
      read_client(report, trial);
      break;
  }
  trial.delivered = std::min(trial.delivered, trial.sent);
  return trial;
}

}  // namespace

TrialOutput TrialReport::output(const TrialInput& trial, std::uint32_t interfaces) const {
  const double intended_per_s = trial.load * interfaces;
  if (sent == 0 || !(offered_per_s > 0)) {
    const double frames = intended_per_s * static_cast<double>(trial.duration.value) / 1e9;
    const auto expected = static_cast<std::uint64_t>(std::max(1.0, frames));
    return {expected, expected};
  }
  if (offered_per_s >= intended_per_s * (1 - kOfferedTolerance)) return {sent, sent - delivered};
  const double intended = std::min(static_cast<double>(sent) * intended_per_s / offered_per_s, kMostFrames);
  const std::uint64_t expected = std::max(sent, static_cast<std::uint64_t>(intended));
  return {expected, expected - delivered};
}

Result<TrialReport> read_trial_report(const std::string& text, LoadSource source, Nanos duration) {
  try {
    return read_object(PlainJson::parse(text), source, duration);
  } catch (const PlainJson::exception& exception) {
    return environment_error("cannot read the report of a trial", exception.what(), "run its command alone");
  }
}

}  // namespace warpline::rate
