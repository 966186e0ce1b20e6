// SPDX-License-Identifier: Apache-2.0
#include "warpline/capture/attached/attached_trace.h"

#include <algorithm>
#include <cstring>

namespace warpline::capture {

Result<AttachedTrace> AttachedTrace::open(const std::string& socket, std::uint32_t one_in) {
  WARPLINE_TRY(AttachedRings rings,
               AttachedRings::attach(socket, {.traces = true, .one_in = one_in, .snaplen = sizeof(PacketTimes)}));
  return AttachedTrace(std::move(rings));
}

AttachedTrace::AttachedTrace(AttachedRings rings) : rings_(std::move(rings)) {
  for (std::uint32_t i = 0; i < rings_.rings().count(); ++i) outputs_.push_back(rings_.rings().output(i));
}

std::optional<TracedPacket> AttachedTrace::next() {
  for (CaptureRingOutput& output : outputs_) {
    const CapturedPacket* const in_ring = output.front();
    if (in_ring == nullptr) continue;
    const CapturedPacket packet = *in_ring;
    TracedPacket traced;
    traced.queue = packet.queue;
    traced.length = packet.length;
    // The process may be mistaken.
    if (static_cast<std::size_t>(packet.verdict) < kVerdicts) traced.verdict = packet.verdict;
    std::memcpy(&traced.times, in_ring->bytes(), sizeof traced.times);
    const auto& ports = rings_.interfaces();
    const auto port = std::ranges::find(ports, packet.port, &CaptureInterface::port);
    if (port != ports.end()) traced.port = port->name;
    output.pop();
    return traced;
  }
  return std::nullopt;
}

}  // namespace warpline::capture
