// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "warpline/ingest/frames/frame_consumer.h"

/// The frames of spead_spectrum and what becomes of them, wherever they lie.
namespace spectrum {

inline constexpr char kDescription[] = "format=spead,packets=16,payload=1024";
inline constexpr std::size_t kPacketsPerFrame = 16;
inline constexpr std::size_t kPacketSamples = 1024 / sizeof(std::int16_t);
inline constexpr std::size_t kSamples = 2048;  ///< of a spectrum
inline constexpr std::size_t kPackets = kSamples / kPacketSamples;
inline constexpr std::size_t kSpectra = kPacketsPerFrame / kPackets;
inline constexpr std::size_t kChannels = kSamples / 2 + 1;

/// Where the program takes spectra: in GPU memory or in that of the host.
bool on_gpu();
/// Makes what takes the spectra of each frame and prints a line of them; null if it cannot be, with a line that says
/// why.
std::unique_ptr<warpline::ingest::FrameConsumer> make_spectrometer();

/// The sum of a frame's spectra.
struct FramePower {
  std::uint64_t heap;
  std::uint32_t lost;     ///< packets
  std::uint32_t spectra;  ///< of kSpectra: the others lacked a packet
  std::array<float, kChannels> power;
};
void print(const FramePower& frame);

}  // namespace spectrum
