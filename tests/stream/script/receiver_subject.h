// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "script_run.h"
#include "warpline/stream/lanes/step_lane_testing.h"
#include "warpline/stream/stream_receiver.h"

namespace warpline::stream_script {

/// A StreamReceiver, whose time passes as the script says.
class ReceiverSubject : public Subject {
 public:
  /// Errors: what StreamReceiver::create() says of the script's settings.
  [[nodiscard]] static Result<std::unique_ptr<ReceiverSubject>> create(const Script& script);

  [[nodiscard]] bool is_exact() const override { return true; }
  [[nodiscard]] Audience audience() const override { return Audience::receiver; }
  [[nodiscard]] Nanos now() const override { return {now_.value - kBegin}; }
  void wait_until(Nanos time) override;
  void inject(FrameBytes frame) override;
  [[nodiscard]] std::optional<FrameBytes> receive(Nanos until) override;
  [[nodiscard]] std::string act(const Action& action) override;

  /// Returns all frames that it sent.
  [[nodiscard]] const std::vector<FrameBytes>& sent() const { return sent_; }
  [[nodiscard]] const stream::ReceiverCounters& counters() const { return receiver_.counters(); }

 protected:
  static constexpr std::int64_t kBegin = 1'000'000'000;  ///< the receiver's clock at the script's beginning

  static stream::ReceiverSettings settings_of(const Script& script);
  ReceiverSubject(stream::StreamReceiver receiver, stream::testing::StepLane* lane)
      : receiver_(std::move(receiver)), lane_(lane) {}

 private:
  void run_lane();
  void take_back(void* token);
  void end_burst();
  void poll();
  [[nodiscard]] std::string accept(const Action& action);
  [[nodiscard]] std::string look(const Action& action, stream::ConnectionId id);
  [[nodiscard]] std::string read(const Action& action, stream::ConnectionId id);

  stream::StreamReceiver receiver_;
  stream::testing::StepLane* lane_;  ///< the receiver's, if it has one
  std::list<FrameBytes> lent_;       ///< to the receiver, if it has a lane
  std::deque<FrameBytes> posted_;    ///< by a lane with queues, and not yet received
  std::vector<FrameBytes> sent_;
  Nanos now_{kBegin};
  bool in_burst_ = false;
  std::map<std::uint32_t, stream::ConnectionId> heard_of_;  ///< by peer: connections that an event told of
  std::map<std::uint32_t, stream::ConnectionId> accepted_;  ///< by peer
};

/// The same with a lane, which takes each of the script's bursts at once.
class LaneSubject : public ReceiverSubject {
 public:
  /// Errors: as of ReceiverSubject.
  [[nodiscard]] static Result<std::unique_ptr<ReceiverSubject>> create(const Script& script) {
    return create(script, false, 0);
  }

 protected:
  [[nodiscard]] static Result<std::unique_ptr<ReceiverSubject>> create(const Script& script, bool acknowledges,
                                                                       std::uint32_t queue_slots);

 private:
  using ReceiverSubject::ReceiverSubject;
};

/// The same with a lane that writes acknowledgements.
class AcknowledgingLaneSubject final : public LaneSubject {
 public:
  /// Errors: as of ReceiverSubject.
  [[nodiscard]] static Result<std::unique_ptr<ReceiverSubject>> create(const Script& script) {
    return LaneSubject::create(script, true, 0);
  }
};

/// The same with a lane that takes frames out of queues, and posts the acknowledgements that it writes or leaves them
/// to the receiver.
template <bool kAcknowledges>
class QueueSubject final : public LaneSubject {
 public:
  /// Errors: as of ReceiverSubject.
  [[nodiscard]] static Result<std::unique_ptr<ReceiverSubject>> create(const Script& script) {
    return LaneSubject::create(script, kAcknowledges, 1024);
  }
};

}  // namespace warpline::stream_script
