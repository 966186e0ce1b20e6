// SPDX-License-Identifier: Apache-2.0
// Any text as a frame description: either it is refused in one line, or it has a text of its own that parses to the
// same, and an assembler of it takes any packet within its memory.
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "warpline/flow/frame_assembler.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace warpline::flow;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(input.find('\n'), input.size());
  const auto description = parse_frame_description(input.substr(0, end));
  if (!description.ok()) {
    if (description.error().why.empty() || description.error().fix.empty()) std::abort();
    return 0;
  }
  const auto again = parse_frame_description(to_text(*description));
  if (!again.ok() || *again != *description) std::abort();
  alignas(FrameLayout::kAlignment) static std::byte memory[1 << 20];
  auto assembler = FrameAssembler::create(*description, PacketForm::datagram, memory);
  if (!assembler.ok()) return 0;
  FrameQueue frames = assembler->queue();
  // The rest is packets, each behind a byte that is its length in units of 8.
  std::uint64_t packets = 0;
  for (std::size_t at = end + 1; at < size; ++packets) {
    const std::size_t length = std::min<std::size_t>(std::size_t{data[at]} * 8, size - at - 1);
    const std::vector<std::uint8_t> packet(data + at + 1, data + at + 1 + length);
    static_cast<void>(assembler->place(packet, packets));
    if (const Frame* frame = frames.next(); frame != nullptr) frames.release(frame->buffer);
    at += 1 + length;
  }
  assembler->flush();
  std::uint64_t counted = 0;
  for (const std::uint64_t count : assembler->counts().placements) counted += count;
  if (counted != packets) std::abort();
  return 0;
}
