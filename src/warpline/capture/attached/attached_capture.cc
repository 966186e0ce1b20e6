// SPDX-License-Identifier: Apache-2.0
#include "warpline/capture/attached/attached_capture.h"

#include <unistd.h>

#include <string>

#include "warpline/capture/packet_filter.h"

namespace warpline::capture {
namespace {

constexpr int kPatience = 5000;  // milliseconds

Error not_attached(std::string why, std::string fix) {
  return {ErrorKind::peer, "cannot attach to the process", std::move(why), std::move(fix)};
}

}  // namespace

Result<std::unique_ptr<AttachedCapture>> AttachedCapture::open(const std::string& socket,
                                                               const CaptureSettings& settings,
                                                               std::string_view application) {
  WARPLINE_TRY(const PacketFilter filter, PacketFilter::compile(settings.filter));
  WARPLINE_TRY(AttachSocket process, AttachSocket::connect(socket));
  const AttachRequest request{.dropped_only = settings.what.dropped_only,
                              .one_in = settings.what.one_in,
                              .snaplen = settings.snaplen,
                              .filter = filter.program()};
  if (!process.send(to_bytes(request))) return not_attached("the request is not taken", "use a shorter filter");
  process.wait(kPatience);
  const AttachSocket::Received answer = process.receive();
  if (!answer.bytes) {
    if (answer.ended) return not_attached("it has ended", "start it again");
    return not_attached("it does not answer", "look whether it is stuck");
  }
  if (const auto why = read_refusal(*answer.bytes)) {
    return environment_error("the process does not let itself be captured", *why, "end the other one, or wait for it");
  }
  const auto welcome = read_welcome(*answer.bytes);
  if (!welcome || welcome->shape.snaplen != settings.snaplen) {
    if (answer.descriptor >= 0) close(answer.descriptor);
    return not_attached("it is of another version", "start both with the same version");
  }
  WARPLINE_TRY(CaptureRings rings, CaptureRings::map(answer.descriptor, welcome->rings, welcome->shape));
  WARPLINE_TRY(CaptureWriter writer, CaptureWriter::open(settings, welcome->interfaces, application));
  return std::unique_ptr<AttachedCapture>(new AttachedCapture(std::move(process), std::move(rings), std::move(writer)));
}

bool AttachedCapture::ended() {
  if (ended_) return true;
  const AttachSocket::Received received = socket_.receive();
  if (received.descriptor >= 0) close(received.descriptor);
  if (received.bytes) left_out_ = read_totals(*received.bytes);
  ended_ = received.bytes || received.ended;
  return ended_;
}

Result<CaptureTotals> AttachedCapture::totals() const {
  if (left_out_) return writer_.totals(*left_out_, true);
  return Error{ErrorKind::peer, "the capture is cut off",
               "the process has ended before it could say what was left out: " + std::to_string(writer_.written()) +
                   " packets are written",
               "look why it has ended"};
}

}  // namespace warpline::capture
