// SPDX-License-Identifier: Apache-2.0
#include "warpline/capture/attached/attached_capture.h"

#include "warpline/capture/packet_filter.h"

namespace warpline::capture {

Result<std::unique_ptr<AttachedCapture>> AttachedCapture::open(const std::string& socket,
                                                               const CaptureSettings& settings,
                                                               std::string_view application) {
  WARPLINE_TRY(const PacketFilter filter, PacketFilter::compile(settings.filter));
  WARPLINE_TRY(AttachedRings rings, AttachedRings::attach(socket, {.dropped_only = settings.what.dropped_only,
                                                                   .one_in = settings.what.one_in,
                                                                   .snaplen = settings.snaplen,
                                                                   .filter = filter.program()}));
  WARPLINE_TRY(CaptureWriter writer, CaptureWriter::open(settings, rings.interfaces(), application));
  return std::unique_ptr<AttachedCapture>(new AttachedCapture(std::move(rings), std::move(writer)));
}

Result<CaptureTotals> AttachedCapture::totals() const {
  if (rings_.left_out()) return writer_.totals(*rings_.left_out(), true);
  return Error{ErrorKind::peer, "the capture is cut off",
               "the process has ended before it could say what was left out: " + std::to_string(writer_.written()) +
                   " packets are written",
               "look why it has ended"};
}

}  // namespace warpline::capture
