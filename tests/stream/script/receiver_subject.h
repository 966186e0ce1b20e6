// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "script_run.h"
#include "warpline/stream/stream_receiver.h"

namespace warpline::stream_script {

/// A StreamReceiver, whose time passes as the script says.
class ReceiverSubject final : public Subject {
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

 private:
  static constexpr std::int64_t kBegin = 1'000'000'000;  ///< the receiver's clock at the script's beginning

  explicit ReceiverSubject(stream::StreamReceiver receiver) : receiver_(std::move(receiver)) {}
  void end_burst();
  void poll();
  [[nodiscard]] std::string accept(const Action& action);
  [[nodiscard]] std::string look(const Action& action, stream::ConnectionId id);
  [[nodiscard]] std::string read(const Action& action, stream::ConnectionId id);

  stream::StreamReceiver receiver_;
  Nanos now_{kBegin};
  bool in_burst_ = false;
  std::map<std::uint32_t, stream::ConnectionId> heard_of_;  ///< by peer: connections that an event told of
  std::map<std::uint32_t, stream::ConnectionId> accepted_;  ///< by peer
};

}  // namespace warpline::stream_script
