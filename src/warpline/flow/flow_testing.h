// SPDX-License-Identifier: Apache-2.0
#pragma once

// Packets and a plain model of frames, for tests; the library itself includes none of this.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "warpline/base/random.h"
#include "warpline/flow/frame.h"
#include "warpline/flow/frame_description.h"
#include "warpline/flow/frame_layout.h"
#include "warpline/flow/placement.h"
#include "warpline/packet/byte_order.h"

namespace warpline::flow {

/// Owns memory aligned as assemblers want it, filled with a byte that no packet brings.
class AlignedMemory {
 public:
  explicit AlignedMemory(std::size_t size, std::byte fill = std::byte{0xee}) : size_(size) {
    data_.reset(static_cast<std::byte*>(::operator new(size, std::align_val_t{FrameLayout::kAlignment})));
    std::fill_n(data_.get(), size, fill);
  }
  [[nodiscard]] std::span<std::byte> bytes() const { return {data_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* data) const { ::operator delete(data, std::align_val_t{FrameLayout::kAlignment}); }
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_;
};

/// Byte `at` of the payload of packet `position` of a stream.
[[nodiscard]] inline std::uint8_t payload_byte(std::uint64_t key, std::uint64_t position, std::uint64_t at) {
  return static_cast<std::uint8_t>(mix64(mix64(key ^ 77) + position * 0x1'0001 + at));
}

/// A datagram of "seq=4:BITS,payload=12:LEN,stream=0:32": the true position is cut to the bits of the field.
[[nodiscard]] inline std::vector<std::uint8_t> numbered_packet(const FrameDescription& description, std::uint32_t key,
                                                               std::int64_t position) {
  std::vector<std::uint8_t> bytes(12 + description.payload_length);
  packet::store_be32(bytes.data(), key);
  const auto number = static_cast<std::uint64_t>(position) * description.step;
  const std::uint32_t count = description.sequence.bytes();
  const bool big = description.sequence.order == ByteOrder::big;
  for (std::uint32_t i = 0; i < count; ++i) {
    bytes[4 + i] = static_cast<std::uint8_t>(number >> 8 * (big ? count - 1 - i : i));
  }
  for (std::uint32_t i = 0; i < description.payload_length; ++i) {
    bytes[12 + i] = payload_byte(key, static_cast<std::uint64_t>(position), i);
  }
  return bytes;
}

/// A frame as the model and an assembler's consumer tell it: equal if all that is promised is.
struct SeenFrame {
  std::uint64_t key = 0;
  std::uint32_t epoch = 0;
  std::int64_t index = 0;
  std::uint64_t time = 0;
  std::string mask;                           ///< '1' or '0' per packet
  std::map<std::uint32_t, std::string> data;  ///< payloads of the packets that are there
  bool operator==(const SeenFrame&) const = default;
};

/// Copies all that is promised of a frame whose payloads are one behind the other.
[[nodiscard]] inline SeenFrame seen(const Frame& frame, const FrameDescription& description) {
  SeenFrame copy{frame.key, frame.epoch, frame.index, frame.time, {}, {}};
  for (std::uint32_t i = 0; i < description.packets; ++i) {
    copy.mask += static_cast<char>('0' + frame.mask[i]);
    if (frame.mask[i] != 1) continue;
    const auto* const at = reinterpret_cast<const char*>(frame.data) + std::size_t{i} * description.payload_length;
    copy.data[i] = std::string(at, description.payload_length);
  }
  return copy;
}

/// What docs/frames.md says, in maps and true positions, and as slow as that.
class ModelAssembler {
 public:
  ModelAssembler(const FrameDescription& description, std::uint32_t frames) : d_(description), free_(frames) {}

  Placement place(std::uint32_t key, std::int64_t position, const std::string& payload, std::uint64_t time) {
    const std::int64_t n = d_.packets;
    const std::int64_t index = position >= 0 ? position / n : -((-position + n - 1) / n);
    const auto slot = static_cast<std::uint32_t>(position - index * n);
    if (!streams_.contains(key)) {
      if (streams_.size() == d_.streams) return Placement::no_stream;
      if (free_ == 0) return Placement::no_frame;
      streams_[key].head = index;
    }
    Stream& stream = streams_[key];
    const std::int64_t oldest = stream.head - d_.window + 1;
    if (index > stream.head + d_.jump || index < oldest - d_.jump) {
      const std::int64_t step = position - stream.run_position;
      const bool follows = stream.run != 0 && step > 0 && step <= d_.restart;
      const std::uint32_t run = follows ? stream.run + 1 : 1;
      if (run < d_.restart) {
        stream.run = run;
        stream.run_position = position;
        return Placement::out_of_window;
      }
      if (free_ == 0) return Placement::no_frame;
      pass(key, stream.head + 1);
      stream.passed.clear();
      stream.head = index;
      ++stream.epoch;
    } else if (index < oldest) {
      stream.run = 0;
      return Placement::late;
    } else if (!stream.frames.contains(index) && !stream.passed.contains(index)) {
      if (free_ == 0) return Placement::no_frame;
      if (index > stream.head) {
        pass(key, index - d_.window + 1);
        stream.head = index;
      }
    }
    stream.run = 0;
    if (const auto passed = stream.passed.find(index); passed != stream.passed.end()) {
      return passed->second ? Placement::duplicate : Placement::late;
    }
    if (!stream.frames.contains(index)) {
      --free_;
      stream.frames[index] = {key, stream.epoch, index, time, std::string(d_.packets, '0'), {}};
    }
    SeenFrame& frame = stream.frames[index];
    if (frame.mask[slot] == '1') return Placement::duplicate;
    frame.mask[slot] = '1';
    frame.data[slot] = payload;
    if (frame.data.size() == d_.packets) {
      handed.push_back(frame);
      stream.frames.erase(index);
      stream.passed[index] = true;
    }
    return Placement::placed;
  }

  void flush(std::uint32_t key) {
    Stream& stream = streams_[key];
    for (std::int64_t i = stream.head - d_.window + 1; i <= stream.head; ++i) {
      if (!stream.passed.contains(i)) stream.passed[i] = false;
    }
    for (const auto& [index, frame] : stream.frames) handed.push_back(frame);
    stream.frames.clear();
  }

  void release() { ++free_; }

  std::vector<SeenFrame> handed;

 private:
  struct Stream {
    std::int64_t head = 0;
    std::uint32_t epoch = 0;
    std::uint32_t run = 0;
    std::int64_t run_position = 0;
    std::map<std::int64_t, SeenFrame> frames;
    std::map<std::int64_t, bool> passed;  ///< frames handed over: whether complete
  };

  /// Hands over the frames before `index`.
  void pass(std::uint32_t key, std::int64_t index) {
    Stream& stream = streams_[key];
    while (!stream.frames.empty() && stream.frames.begin()->first < index) {
      handed.push_back(stream.frames.begin()->second);
      stream.frames.erase(stream.frames.begin());
    }
  }

  FrameDescription d_;
  std::uint32_t free_;
  std::map<std::uint32_t, Stream> streams_;
};

}  // namespace warpline::flow
