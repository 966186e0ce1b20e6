// SPDX-License-Identifier: Apache-2.0
#include "script_run.h"

#include <fmt/format.h>

#include <algorithm>

namespace warpline::stream_script {
namespace {

using stream::testing::Reply;

constexpr std::int64_t kTolerance = 2'000'000;         ///< ns: a tick of timers, and one to come
constexpr std::int64_t kLongestWait = 5'000'000'000;   ///< ns that a subject has whose times do not count
constexpr std::int64_t kEver = 1'000'000'000'000'000;  ///< ns that "any time" is for others

class ScriptRun {
 public:
  ScriptRun(const Script& script, Subject& subject) : script_(script), subject_(subject), wire_(script) {}

  std::string run() {
    for (const Event& event : script_.events) {
      if (event.audience != Audience::all && event.audience != subject_.audience()) continue;
      const Nanos base{event.when.kind == When::Kind::relative ? time_.value : 0};
      const Nanos from{base.value + event.when.from};
      const Nanos to{base.value + event.when.to};
      if (from < time_ && event.when.kind != When::Kind::any) return at(event.line, "it lies in the past");
      std::string failure;
      if (const auto* const injected = std::get_if<Injected>(&event.what)) {
        failure = inject(*injected, from);
      } else if (const auto* const expected = std::get_if<Expected>(&event.what)) {
        failure = expect(*expected, event.when.kind, from, to);
      } else {
        failure = act(std::get<Action>(event.what), from);
      }
      if (!failure.empty()) return at(event.line, failure);
    }
    return nothing_left() ? "" : at(0, "it sends more than the script says: " + unexpected_);
  }

 private:
  [[nodiscard]] std::string at(std::uint32_t line, const std::string& failure) const {
    const std::string where = line == 0 ? "end" : std::to_string(line);
    return fmt::format("{}:{}: {} (at {:.6f} s)", script_.name, where, failure,
                       static_cast<double>(subject_.now().value) / 1e9);
  }

  /// Frames that are injected at one time are one burst, which is not answered before its end.
  std::string inject(const Injected& segment, Nanos time) {
    if (std::string failure = pass(time); !failure.empty()) return failure;
    subject_.inject(wire_.frame_of(segment));
    return {};
  }

  std::string act(const Action& action, Nanos time) {
    if (std::string failure = pass(time); !failure.empty()) return failure;
    return subject_.act(action);
  }

  /// Lets time pass in which nothing is sent.
  std::string pass(Nanos time) {
    if (time > time_) {
      if (subject_.is_exact()) {
        if (auto frame = subject_.receive(time)) return "before it, what no line expects is sent: " + text_of(*frame);
      }
      subject_.wait_until(time);
    }
    time_ = time;
    return {};
  }

  std::string expect(const Expected& expected, When::Kind when, Nanos from, Nanos to) {
    const bool any = when == When::Kind::any;
    const Nanos begin = subject_.now();
    const Nanos limit = !subject_.is_exact() ? Nanos{std::max(begin, from).value + kLongestWait}
                        : any                ? Nanos{begin.value + kEver}
                                             : Nanos{to.value + kTolerance};
    while (auto frame = subject_.receive(limit)) {
      const auto reply = wire_.read(*frame);
      if (!reply && !subject_.is_exact()) continue;  // of other protocols
      if (!reply) return "what is sent is no segment with right checksums";
      const Strictness strictness{subject_.is_exact(), subject_.is_exact(), subject_.is_exact()};
      std::string difference = wire_.compare(expected, *reply, strictness);
      if (difference.empty()) {
        if (subject_.is_exact() && !any && subject_.now().value < from.value - kTolerance) return "it is early";
        time_ = any || from != to ? std::max(time_, subject_.now()) : from;
        return {};
      }
      if (subject_.is_exact() || !may_be_skipped(expected, *reply)) {
        return fmt::format("{}: {}", difference, wire_.describe(*reply));
      }
    }
    return "nothing is sent";
  }

  /// Stacks may acknowledge more often than they must.
  [[nodiscard]] bool may_be_skipped(const Expected& expected, const Reply& reply) const {
    if (reply.tcp().flags != packet::kTcpAck) return false;
    const bool other_peer = reply.tcp().destination_port != ScriptWire::port_of(expected.peer);
    return other_peer || !expected.acknowledgement ||
           static_cast<std::int32_t>(*expected.acknowledgement - wire_.acknowledged(reply)) >= 0;
  }

  bool nothing_left() {
    while (auto frame = subject_.receive(subject_.now())) {
      if (const auto reply = wire_.read(*frame)) {
        if (!subject_.is_exact() && reply->tcp().flags == packet::kTcpAck) continue;
      } else if (!subject_.is_exact()) {
        continue;
      }
      unexpected_ = text_of(*frame);
      return false;
    }
    return true;
  }

  [[nodiscard]] std::string text_of(FrameBytes& frame) {
    const auto reply = wire_.read(frame);
    return reply ? wire_.describe(*reply) : "a frame that is no right segment";
  }

  const Script& script_;
  Subject& subject_;
  ScriptWire wire_;
  Nanos time_{};  ///< where the script is
  std::string unexpected_;
};

}  // namespace

std::string run_script(const Script& script, Subject& subject) { return ScriptRun(script, subject).run(); }

}  // namespace warpline::stream_script
