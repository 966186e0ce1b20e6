// SPDX-License-Identifier: Apache-2.0
#include "warpline/flow/frame_plan.h"

namespace warpline::flow {

Result<FramePlan> make_frame_plan(const FrameDescription& description, PacketForm form) {
  if (form == PacketForm::datagram && description.origin == FrameOrigin::ethernet) {
    return usage_error("cannot count offsets from the Ethernet header", "datagrams of a socket have none",
                       "leave from=ethernet out, and count offsets from the first byte behind the UDP header");
  }
  if (form == PacketForm::datagram && description.stream == StreamKind::five_tuple) {
    return usage_error("cannot tell streams by their 5-tuple", "datagrams of a socket come without addresses",
                       "use stream=OFFSET:BITS, a field of the packet");
  }
  const bool heaps = description.format == HeaderFormat::spead;
  const std::uint32_t per_unit = description.packets_per_heap();
  const std::uint32_t units = description.packets / per_unit;
  const std::uint32_t own_bits = heaps ? 48 : 64;
  return FramePlan{.format = description.format,
                   .origin = description.origin,
                   .form = form,
                   .stream = description.stream,
                   .sequence = description.sequence,
                   .stream_field = description.stream_field,
                   .payload_offset = description.payload_offset,
                   .payload_length = description.payload_length,
                   .packets = description.packets,
                   .units = units,
                   .packets_per_unit = per_unit,
                   .unit_bytes = heaps ? description.heap_bytes : description.payload_length,
                   .first_bytes = heaps ? description.first_bytes : description.payload_length,
                   .window = description.window,
                   .jump = description.jump,
                   .restart = description.restart,
                   .streams = description.streams,
                   .bits = description.sequence.bits != 0 ? description.sequence.bits : own_bits,
                   .step = description.step,
                   .frame_step = description.step * units,
                   .rate = description.rate};
}

}  // namespace warpline::flow
