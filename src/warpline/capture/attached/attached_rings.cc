// SPDX-License-Identifier: Apache-2.0
#include "warpline/capture/attached/attached_rings.h"

#include <unistd.h>

namespace warpline::capture {
namespace {

constexpr int kPatience = 5000;  // milliseconds

Error not_attached(std::string why, std::string fix) {
  return {ErrorKind::peer, "cannot attach to the process", std::move(why), std::move(fix)};
}

}  // namespace

Result<AttachedRings> AttachedRings::attach(const std::string& socket, const AttachRequest& request) {
  WARPLINE_TRY(AttachSocket process, AttachSocket::connect(socket));
  if (!process.send(to_bytes(request))) return not_attached("the request is not taken", "use a shorter filter");
  process.wait(kPatience);
  const AttachSocket::Received answer = process.receive();
  if (!answer.bytes) {
    if (answer.ended) return not_attached("it has ended", "start it again");
    return not_attached("it does not answer", "look whether it is stuck");
  }
  if (const auto why = read_refusal(*answer.bytes)) {
    return environment_error("the process lets nobody attach", *why, "wait for it, or end what goes on");
  }
  auto welcome = read_welcome(*answer.bytes);
  if (!welcome || welcome->shape.snaplen != request.snaplen) {
    if (answer.descriptor >= 0) close(answer.descriptor);
    return not_attached("it is of another version", "start both with the same version");
  }
  WARPLINE_TRY(CaptureRings rings, CaptureRings::map(answer.descriptor, welcome->rings, welcome->shape));
  return AttachedRings(std::move(process), std::move(rings), std::move(welcome->interfaces));
}

bool AttachedRings::ended() {
  if (ended_) return true;
  const AttachSocket::Received received = socket_.receive();
  if (received.descriptor >= 0) close(received.descriptor);
  if (received.bytes) left_out_ = read_totals(*received.bytes);
  ended_ = received.bytes || received.ended;
  return ended_;
}

}  // namespace warpline::capture
