// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "warpline/service/streams/kept/stream_inbox.h"
#include "warpline/stream_port/run/stream_application.h"

namespace warpline::service {

/// Gives the connections of a queue to the consumer of an inbox, and the place of their bytes back to their rings when
/// nobody has them any more. A connection that was read to its end is closed, one that was given up before is reset:
/// when nobody has bytes of it.
class KeptStreams final : public stream_port::StreamApplication {
 public:
  /// `receiver` has those settings. `chunk` and `gpu`: as of StreamHome.
  KeptStreams(const stream::StreamReceiver& receiver, const stream::ReceiverSettings& settings, std::uint64_t chunk,
              std::shared_ptr<StreamInbox> inbox, std::optional<StreamHome::Gpu> gpu = std::nullopt);

  bool turn(stream::StreamReceiver& receiver, Nanos now) override;
  [[nodiscard]] bool settled() const override { return home_->unused(); }
  [[nodiscard]] bool failed() const override { return false; }
  void finish() override { home_->shut(); }
  void abandon() override {}
  std::uint32_t abort_some(stream::StreamReceiver& receiver, std::uint32_t most, Nanos now) override;

 private:
  /// A connection that its keeper has not ended.
  struct Known {
    stream::ConnectionId id;
    std::uint64_t released = 0;
    bool known = false;
  };

  void handle(stream::StreamReceiver& receiver, const stream::StreamEvent& event);
  void hear(stream::StreamReceiver& receiver, std::uint32_t place, Nanos now);

  std::shared_ptr<StreamInbox> inbox_;
  std::shared_ptr<StreamHome> home_;
  std::vector<Known> connections_;
  bool told_ = false;  ///< in this turn
  std::uint32_t next_abort_ = 0;
};

}  // namespace warpline::service
