// SPDX-License-Identifier: Apache-2.0
#include "warpline/flow/frame_assembler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "warpline/base/property_testing.h"
#include "warpline/flow/flow_testing.h"
#include "warpline/packet/frame_testing.h"

namespace warpline::flow {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint32_t kKey = 5;

FrameDescription plain(std::string_view more = "") {
  return *parse_frame_description("packets=4,seq=4:64,payload=12:24,stream=0:32" + std::string(more));
}

/// An assembler with memory for so many frames, and a consumer that copies what it sees.
struct Bench {
  explicit Bench(const FrameDescription& of, std::uint64_t frames = 80)
      : description(of),
        memory(size_for(of, frames)),
        assembler(*FrameAssembler::create(of, PacketForm::datagram, memory.bytes())),
        queue(assembler.queue()) {
    EXPECT_EQ(assembler.layout().frames(), frames);
  }

  static std::size_t size_for(const FrameDescription& of, std::uint64_t frames) {
    const FramePlan plan = *make_frame_plan(of, PacketForm::datagram);
    EXPECT_GT(frames, std::uint64_t{of.streams} * of.window);
    for (std::size_t size = 256;; size += 256) {
      const Result<FrameLayout> layout = FrameLayout::fit(plan, {size});
      if (layout.ok() && layout->frames() == frames) return size;
    }
  }

  Placement place(std::int64_t position, std::uint64_t time = 0, std::uint32_t key = kKey) {
    return assembler.place(numbered_packet(description, key, position), time);
  }

  /// Takes what was handed over and releases it.
  std::vector<SeenFrame> consume() {
    std::vector<SeenFrame> frames;
    while (const Frame* frame = queue.next()) {
      EXPECT_EQ(frame->present + frame->missing, description.packets);
      EXPECT_EQ(frame->present,
                frame->data == nullptr ? 0 : std::count(frame->mask, frame->mask + description.packets, 1));
      frames.push_back(seen(*frame, description));
      queue.release(frame->buffer);
    }
    return frames;
  }

  FrameDescription description;
  AlignedMemory memory;
  FrameAssembler assembler;
  FrameQueue queue;
};

std::vector<std::string> masks(const std::vector<SeenFrame>& frames) {
  std::vector<std::string> all;
  for (const SeenFrame& frame : frames) all.push_back(std::to_string(frame.index) + ":" + frame.mask);
  return all;
}

TEST(FrameAssembler, AFrameIsHandedOverWhenItIsComplete) {
  Bench bench(plain());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(bench.place(8 + i, 100 + static_cast<std::uint64_t>(i)), Placement::placed);
  EXPECT_EQ(bench.queue.next(), nullptr);
  EXPECT_EQ(bench.place(11, 103), Placement::placed);
  const Frame* const frame = bench.queue.next();
  ASSERT_NE(frame, nullptr);
  EXPECT_EQ(frame->index, 2);
  EXPECT_EQ(frame->first_sequence, 8U);
  EXPECT_EQ(frame->time, 100U);
  EXPECT_EQ(frame->key, kKey);
  EXPECT_EQ(frame->missing, 0U);
  for (std::uint64_t i = 0; i < 4 * 24; ++i) EXPECT_EQ(frame->data[i], payload_byte(kKey, 8 + i / 24, i % 24));
  EXPECT_EQ(bench.place(9), Placement::duplicate) << "its frame is complete";
}

TEST(FrameAssembler, TheWindowPassesWhatIsIncomplete) {
  Bench bench(plain(",window=2"));
  EXPECT_EQ(bench.place(0), Placement::placed);
  EXPECT_EQ(bench.place(2), Placement::placed);
  EXPECT_EQ(bench.place(5), Placement::placed);
  EXPECT_THAT(masks(bench.consume()), ElementsAre());
  EXPECT_EQ(bench.place(8), Placement::placed) << "frame 2 of a window of 2: frame 0 is passed";
  EXPECT_THAT(masks(bench.consume()), ElementsAre("0:1010"));
  EXPECT_EQ(bench.place(1), Placement::late);
  EXPECT_EQ(bench.place(4), Placement::placed) << "frame 1 is in the window";
  EXPECT_EQ(bench.place(5), Placement::duplicate);
  bench.assembler.flush();
  EXPECT_THAT(masks(bench.consume()), ElementsAre("1:1100", "2:1000"));
  EXPECT_EQ(bench.place(6), Placement::late) << "frame 1 was flushed";
  const AssemblerCounts counts = bench.assembler.counts();
  EXPECT_EQ(counts.incomplete, 3U);
  EXPECT_EQ(counts.missing, 7U);
  EXPECT_EQ(counts.complete, 0U);
  EXPECT_EQ(counts.placements[static_cast<std::size_t>(Placement::late)], 2U);
}

TEST(FrameAssembler, FramesWithoutAnyPacketAreSkipped) {
  Bench bench(plain(",window=2,jump=8"));
  EXPECT_EQ(bench.place(0), Placement::placed);
  EXPECT_EQ(bench.place(4 * 7), Placement::placed);
  bench.assembler.flush();
  EXPECT_THAT(masks(bench.consume()), ElementsAre("0:1000", "7:1000"));
  EXPECT_EQ(bench.assembler.counts().skipped, 6U);
}

TEST(FrameAssembler, PacketsBeforeTheFirstOneHavePlacesInTheWindow) {
  Bench bench(plain());
  EXPECT_EQ(bench.place(1), Placement::placed);
  EXPECT_EQ(bench.place(0), Placement::placed);
  EXPECT_EQ(bench.place(-1), Placement::placed) << "sequence numbers come round";
  bench.assembler.flush();
  EXPECT_THAT(masks(bench.consume()), ElementsAre("-1:0001", "0:1100"));
  EXPECT_EQ(bench.assembler.counts().skipped, 0U);
}

TEST(FrameAssembler, AlonePacketFarAwayIsDropped) {
  Bench bench(plain(",window=2,jump=2"));
  EXPECT_EQ(bench.place(100), Placement::placed);
  EXPECT_EQ(bench.place(112), Placement::out_of_window) << "three frames on";
  EXPECT_EQ(bench.place(101), Placement::placed);
  EXPECT_EQ(bench.place(87), Placement::out_of_window);
  EXPECT_EQ(bench.place(88), Placement::late);
  EXPECT_EQ(bench.assembler.counts().restarts, 0U);
}

TEST(FrameAssembler, ASourceThatRestartsIsFollowed) {
  Bench bench(plain(",window=2,restart=3"));
  EXPECT_EQ(bench.place(100), Placement::placed);
  EXPECT_EQ(bench.place(0), Placement::out_of_window);
  EXPECT_EQ(bench.place(1), Placement::out_of_window);
  EXPECT_EQ(bench.place(2), Placement::placed);
  EXPECT_EQ(bench.place(1), Placement::placed) << "the frame is in the window now";
  EXPECT_EQ(bench.place(3), Placement::placed);
  bench.assembler.flush();
  const std::vector<SeenFrame> frames = bench.consume();
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_THAT(masks(frames), ElementsAre("25:1000", "0:0111"));
  EXPECT_EQ(frames[0].epoch, 0U);
  EXPECT_EQ(frames[1].epoch, 1U);
  EXPECT_EQ(bench.assembler.counts().restarts, 1U);
}

TEST(FrameAssembler, GarbageDoesNotRestartASource) {
  Bench bench(plain(",window=2,restart=3"));
  Random random(1);
  for (std::int64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(bench.place(i), Placement::placed);
    EXPECT_EQ(bench.place(static_cast<std::int64_t>(random.next() | 1ULL << 40)), Placement::out_of_window);
    EXPECT_EQ(bench.place(static_cast<std::int64_t>(random.next() | 1ULL << 40)), Placement::out_of_window);
    bench.consume();
  }
  EXPECT_EQ(bench.assembler.counts().complete, 250U);
  EXPECT_EQ(bench.assembler.counts().restarts, 0U);
}

TEST(FrameAssembler, NothingIsWrittenUnderAConsumer) {
  Bench bench(plain(",window=2,streams=1"), 3);
  std::int64_t position = 0;
  while (bench.place(position) == Placement::placed) ++position;
  EXPECT_EQ(position, 12) << "three frames are with the consumer, and the first packet of the fourth is not placed";
  EXPECT_EQ(bench.place(12), Placement::no_frame);
  const Frame first = *bench.queue.next();
  const Frame second = *bench.queue.next();
  const SeenFrame before = seen(first, bench.description);
  bench.queue.release(second.buffer);
  EXPECT_EQ(bench.place(12), Placement::placed) << "frames are released in any order";
  EXPECT_EQ(bench.place(16), Placement::no_frame);
  EXPECT_EQ(seen(first, bench.description), before);
  EXPECT_EQ(bench.assembler.counts().placements[static_cast<std::size_t>(Placement::no_frame)], 3U);
}

TEST(FrameAssembler, StreamsStandSideBySide) {
  Bench bench(plain(",window=2,streams=3"));
  for (std::int64_t i = 0; i < 4; ++i) {
    for (std::uint32_t key = 0; key < 4; ++key) {
      EXPECT_EQ(bench.place(i + key, 0, key), key == 3 ? Placement::no_stream : Placement::placed);
    }
  }
  bench.assembler.flush();
  const std::vector<SeenFrame> frames = bench.consume();
  EXPECT_THAT(masks(frames), ElementsAre("0:1111", "0:0111", "1:1000", "0:0011", "1:1100"));
  EXPECT_EQ(frames[3].key, 2U);
  EXPECT_EQ(bench.assembler.counts().streams, 3U);
}

TEST(FrameAssembler, AFrameOfOnePacketIsCompleteAtOnce) {
  Bench bench(*parse_frame_description("packets=1,seq=4:16,payload=12:5,stream=0:32"));
  for (std::int64_t i = 65530; i < 65545; ++i) EXPECT_EQ(bench.place(i), Placement::placed);
  EXPECT_EQ(bench.place(65544), Placement::duplicate);
  const std::vector<SeenFrame> frames = bench.consume();
  ASSERT_EQ(frames.size(), 15U);
  EXPECT_EQ(frames[14].index, 65544);
}

TEST(FrameAssembler, TooLittleMemoryIsRefused) {
  const FrameDescription description = plain(",window=4,streams=2");
  const AlignedMemory memory(1024);
  const Result<FrameAssembler> refused = FrameAssembler::create(description, PacketForm::datagram, memory.bytes());
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(), HasSubstr("cannot assemble frames in 1024 bytes: 9 frames of 96 bytes"));
  const AlignedMemory enough(Bench::size_for(description, 9));
  const auto skewed = FrameAssembler::create(description, PacketForm::datagram, enough.bytes().subspan(1));
  ASSERT_FALSE(skewed.ok());
  EXPECT_THAT(skewed.error().message(), HasSubstr("aligned to 256 bytes"));
}

TEST(FrameAssembler, UsesNoByteBeyondItsMemory) {
  const FrameDescription description = plain(",window=2,streams=2");
  for (const std::size_t more : {0U, 1U, 255U, 256U, 5000U}) {
    const std::size_t size = Bench::size_for(description, 5) + more;
    const AlignedMemory memory(size + 512);
    FrameAssembler assembler = *FrameAssembler::create(description, PacketForm::datagram, memory.bytes().first(size));
    EXPECT_LE(assembler.layout().total(), size);
    FrameQueue queue = assembler.queue();
    for (std::int64_t i = 0; i < 200; ++i) {
      assembler.place(numbered_packet(description, 1 + (i & 1), i / 2), 0);
      if (const Frame* frame = queue.next(); frame != nullptr) queue.release(frame->buffer);
    }
    EXPECT_EQ(assembler.counts().complete, 50U);
    for (const std::byte byte : memory.bytes().subspan(size)) EXPECT_EQ(byte, std::byte{0xee});
  }
}

TEST(FrameAssembler, FramesOfASilentStreamAreHandedOverAfterTheTimeLimit) {
  Bench bench(plain(",window=3,streams=2"));
  bench.place(0, 10);
  bench.place(5, 11);
  bench.place(20, 12, kKey + 1);
  bench.assembler.expire(20, 100);  // from here on both streams are silent
  bench.place(21, 90, kKey + 1);
  bench.assembler.expire(119, 100);
  EXPECT_THAT(masks(bench.consume()), ElementsAre());
  bench.assembler.expire(120, 100);
  EXPECT_THAT(masks(bench.consume()), ElementsAre("0:1000", "1:0100")) << "the other stream is not silent";
  EXPECT_EQ(bench.place(1, 121), Placement::late);
  EXPECT_EQ(bench.place(8, 122), Placement::placed) << "the next frame of the stream";
  bench.assembler.expire(219, 100);
  EXPECT_THAT(masks(bench.consume()), ElementsAre("5:1100")) << "silent since it was observed at 119";
  bench.assembler.expire(219 + 101, 100);
  EXPECT_THAT(masks(bench.consume()), ElementsAre("2:1000"));
  bench.assembler.expire(1'000'000, 100);
  EXPECT_THAT(masks(bench.consume()), ElementsAre()) << "nothing is open";
  const AssemblerCounts counts = bench.assembler.counts();
  EXPECT_EQ(counts.timed_out, 4U);
  EXPECT_EQ(counts.incomplete, 4U);
  EXPECT_EQ(counts.skipped, 0U);
}

/// One call reads a bounded number of windows; the next ones go on where it ended.
TEST(FrameAssembler, AllStreamsExpireInTheEnd) {
  constexpr std::uint32_t kStreams = 700;
  Bench bench(plain(",window=4,streams=700"), 2801);
  for (std::uint32_t stream = 0; stream < kStreams; ++stream) bench.place(0, 0, stream);
  for (std::uint64_t now = 1; now <= 3; ++now) bench.assembler.expire(now, 100);
  std::size_t frames = 0;
  for (std::uint64_t now = 104; now <= 106; ++now) {
    bench.assembler.expire(now, 100);
    const std::size_t handed = bench.consume().size();
    EXPECT_LE(handed, FrameCore::kExpiryCells / 4);
    frames += handed;
  }
  EXPECT_EQ(frames, kStreams);
}

TEST(FrameAssembler, AConsumerOnAnotherThreadSeesWholeFrames) {
  constexpr std::int64_t kFrames = 20'000;
  Bench bench(plain(",window=2,streams=1"), 5);
  std::thread consumer([&] {
    for (std::int64_t i = 0; i < kFrames;) {
      const Frame* const frame = bench.queue.next();
      if (frame == nullptr) {
        std::this_thread::yield();
        continue;
      }
      ASSERT_EQ(frame->index, i++);
      for (std::uint64_t at = 0; at < 4 * 24; ++at) {
        ASSERT_EQ(frame->data[at], payload_byte(kKey, frame->first_sequence + at / 24, at % 24));
      }
      bench.queue.release(frame->buffer);
    }
  });
  for (std::int64_t i = 0; i < kFrames * 4; ++i) {
    while (bench.place(i) == Placement::no_frame) std::this_thread::yield();
  }
  consumer.join();
}

/// Positions as a bad network delivers them: lost, doubled, late, with headers that lie, of sources that restart.
std::vector<std::int64_t> bad_network(Random& random, std::int64_t first, std::size_t count, std::uint64_t faults) {
  std::vector<std::int64_t> sent;
  std::int64_t position = first;
  for (std::size_t i = 0; i < count; ++i) {
    if (random.below(faults) == 0) position = static_cast<std::int64_t>(random.below(2000));
    sent.push_back(position++);
    if (random.below(faults) == 0) position += static_cast<std::int64_t>(random.below(40));
  }
  std::vector<std::int64_t> received;
  std::deque<std::int64_t> held;
  for (const std::int64_t one : sent) {
    const std::uint64_t fate = random.below(faults);
    if (fate == 0) continue;
    if (fate == 1) received.push_back(one);
    if (fate == 2) received.push_back(static_cast<std::int64_t>(random.next() >> 20));
    if (fate == 3) {
      held.push_back(one);
    } else {
      received.push_back(one);
    }
    if (!held.empty() && random.below(8) == 0) {
      received.push_back(held.front());
      held.pop_front();
    }
  }
  return received;
}

/// Gives the same packets to the model and to the assembler. The consumer releases now and then, and not in order.
void expect_as_model(const FrameDescription& description, std::uint32_t frames, Random& random, std::uint64_t faults,
                     bool far) {
  Bench bench(description, frames);
  ModelAssembler model(description, frames);
  std::vector<std::uint32_t> held;
  std::vector<SeenFrame> handed;
  const auto consume = [&](std::uint64_t keep) {
    while (const Frame* frame = bench.queue.next()) {
      handed.push_back(seen(*frame, description));
      held.push_back(frame->buffer);
    }
    while (held.size() > keep) {
      const std::size_t which = random.below(held.size());
      bench.queue.release(held[which]);
      model.release();
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
    }
  };
  std::vector<std::vector<std::int64_t>> sources;
  for (int i = 0; i < 3; ++i) {
    const auto first = static_cast<std::int64_t>(random.below(200));
    sources.push_back(bad_network(random, first, 400, faults));
    if (!far) {  // only what serial arithmetic tells from each other
      std::int64_t newest = first;
      std::erase_if(sources.back(), [&](std::int64_t position) {
        if (std::abs(position - newest) > 24) return true;
        newest = std::max(newest, position);
        return false;
      });
    }
  }
  for (std::uint64_t time = 0; time < 1000; ++time) {
    const auto key = static_cast<std::uint32_t>(random.below(sources.size()));
    if (sources[key].empty()) continue;
    const std::int64_t position = sources[key].front();
    sources[key].erase(sources[key].begin());
    const std::vector<std::uint8_t> packet = numbered_packet(description, key, position);
    const std::string payload(packet.begin() + 12, packet.end());
    const Placement expected = model.place(key, position, payload, time);
    ASSERT_EQ(name(bench.assembler.place(packet, time)), name(expected)) << "position " << position;
    if (random.below(3) == 0) consume(random.below(3));
  }
  consume(0);
  ASSERT_TRUE(handed == model.handed);
}

TEST(FrameAssembler, DoesAsTheModelInBadNetworks) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const std::string text =
        "packets=" + std::to_string(1 + random.below(8)) + ",seq=4:64:" + (random.below(2) == 0 ? "le" : "be") +
        ",payload=12:" + std::to_string(1 + random.below(40)) +
        ",stream=0:32,streams=" + std::to_string(1 + random.below(3)) +
        ",window=" + std::to_string(1 + random.below(5)) + ",jump=" + std::to_string(1 + random.below(6)) +
        ",restart=" + std::to_string(2 + random.below(4)) + ",step=" + std::to_string(1 + random.below(3));
    const FrameDescription description = *parse_frame_description(text);
    const auto frames = static_cast<std::uint32_t>(description.streams * description.window + 1 + random.below(4));
    expect_as_model(description, frames, random, 8 + random.below(60), true);
    if (HasFatalFailure()) return;
  }
}

TEST(FrameAssembler, DoesAsTheModelWhereNumbersComeRound) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    // 4 frames of window and jumps of 8 either way, 4 packets each: 80 of 256 numbers.
    const FrameDescription description = plain(",window=4,jump=8,streams=3");
    FrameDescription narrow = description;
    narrow.sequence.bits = 8;
    expect_as_model(narrow, 20, random, 8 + random.below(60), false);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace warpline::flow
