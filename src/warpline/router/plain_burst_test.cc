// SPDX-License-Identifier: Apache-2.0
#include "warpline/router/plain_burst.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "warpline/base/property_testing.h"
#include "warpline/packet/frame_testing.h"
#include "warpline/route/hop_rewrite.h"

namespace warpline::router {
namespace {

constexpr unsigned kEight = PlainBurst::kGroup;

/// Frames, each in a buffer of its own that ends with it, so that reading too far shows.
class Eights {
 public:
  explicit Eights(const std::vector<packet::FrameBytes>& frames) : bytes_(frames) {
    for (const packet::FrameBytes& frame : bytes_) {
      begins_.push_back(frame.data());
      lengths_.push_back(static_cast<std::uint16_t>(frame.size()));
    }
    destinations_.resize(frames.size());
  }
  [[nodiscard]] unsigned groups() const { return static_cast<unsigned>(bytes_.size()) / kEight; }
  PlainBurst::Found look(PlainBurst::Instructions use) {
    return PlainBurst(packet::kTestDestinationMac, use)
        .look(begins_.data(), lengths_.data(), groups(), destinations_.data());
  }
  [[nodiscard]] std::uint32_t destination(std::size_t i) const { return destinations_[i]; }

 private:
  std::vector<packet::FrameBytes> bytes_;
  std::vector<const std::uint8_t*> begins_;
  std::vector<std::uint16_t> lengths_;
  std::vector<std::uint32_t> destinations_;
};

std::vector<PlainBurst::Instructions> usable() {
  std::vector<PlainBurst::Instructions> all;
  for (const auto use : {PlainBurst::Instructions::avx2, PlainBurst::Instructions::avx512}) {
    if (use <= PlainBurst::best()) all.push_back(use);
  }
  return all;
}

packet::FrameBytes good_frame(std::uint8_t number) {
  packet::Ipv4Header header;
  header.identification = static_cast<std::uint16_t>(number * 977);
  header.type_of_service = number;
  packet::FrameBytes bytes =
      packet::ipv4_frame(packet::kProtocolUdp, packet::udp_datagram(packet::counting(number % 40)), header);
  packet::store_be32(bytes.data() + 14 + packet::Ipv4View::kDestination, number * 0x01fe'807fU);
  return packet::with_checksums(bytes);
}

std::vector<packet::FrameBytes> good_frames(unsigned count) {
  std::vector<packet::FrameBytes> frames;
  for (unsigned i = 0; i < count; ++i) frames.push_back(good_frame(static_cast<std::uint8_t>(i)));
  return frames;
}

bool is_plain(const packet::FrameBytes& bytes) {
  const auto length = static_cast<std::uint32_t>(bytes.size());
  return route::PlainFrames(packet::kTestDestinationMac).is_ipv4(bytes.data(), length, length);
}

TEST(PlainBurst, KnowsPlainFrames) {
  for (const unsigned groups : {1U, 2U, 64U}) {
    const std::vector<packet::FrameBytes> frames = good_frames(groups * kEight);
    std::uint64_t bytes = 0;
    for (const packet::FrameBytes& frame : frames) bytes += frame.size();
    for (const auto use : usable()) {
      Eights eights(frames);
      const PlainBurst::Found found = eights.look(use);
      EXPECT_EQ(found.plain, PlainBurst::all(groups));
      EXPECT_EQ(found.bytes, bytes);
      for (std::size_t i = 0; i < frames.size(); ++i) {
        EXPECT_EQ(eights.destination(i), packet::load_be32(frames[i].data() + 14 + packet::Ipv4View::kDestination));
      }
    }
  }
}

TEST(PlainBurst, WithoutTheInstructionsKnowsNothing) {
  EXPECT_EQ(Eights(good_frames(kEight)).look(PlainBurst::Instructions::none).plain, 0U);
}

TEST(PlainBurst, OneOtherFrameIsNoticedWhereverItStands) {
  for (unsigned at = 0; at < 3 * kEight; ++at) {
    std::vector<packet::FrameBytes> frames = good_frames(3 * kEight);
    frames[at][14 + packet::Ipv4View::kChecksum] ^= 1;
    for (const auto use : usable()) {
      EXPECT_EQ(Eights(frames).look(use).plain, 0b111U & ~(1U << at / kEight)) << at;
    }
  }
}

/// It says what PlainFrames says, whatever stands in whichever byte, and however much of the frame is missing.
WARPLINE_PROPERTY(PlainBurst, AgreesWithTheLookAtOne, ()) {
  std::vector<packet::FrameBytes> frames = good_frames(2 * kEight);
  packet::FrameBytes& changed = frames[*rc::gen::inRange(0U, 2 * kEight)];
  const auto at = *rc::gen::inRange<std::size_t>(0, 36);
  changed[at % changed.size()] = *rc::gen::arbitrary<std::uint8_t>();
  if (*rc::gen::arbitrary<bool>()) changed = packet::with_checksums(changed);
  if (*rc::gen::arbitrary<bool>())
    changed.resize(*rc::gen::inRange<std::size_t>(PlainBurst::kReads, changed.size() + 2));
  std::uint64_t plain = 0;
  for (unsigned group = 0; group < 2; ++group) {
    const auto begin = frames.begin() + group * kEight;
    plain |= std::uint64_t{std::all_of(begin, begin + kEight, is_plain)} << group;
  }
  for (const auto use : usable()) RC_ASSERT(Eights(frames).look(use).plain == plain);
}

TEST(PlainBurst, EveryFirstByteOfASourceIsJudgedAsByTheLookAtOne) {
  for (unsigned byte = 0; byte <= UINT8_MAX; ++byte) {
    std::vector<packet::FrameBytes> frames = good_frames(kEight);
    frames[byte % kEight][14 + packet::Ipv4View::kSource] = static_cast<std::uint8_t>(byte);
    frames[byte % kEight] = packet::with_checksums(frames[byte % kEight]);
    for (const auto use : usable()) {
      EXPECT_EQ(Eights(frames).look(use).plain != 0, is_plain(frames[byte % kEight])) << byte;
    }
  }
}

struct Mbufs {
  explicit Mbufs(unsigned count) : mbufs(count) {
    for (unsigned i = 0; i < count; ++i) {
      mbufs[i].buf_addr = buffer;
      mbufs[i].data_off = static_cast<std::uint16_t>(i);
      mbufs[i].data_len = static_cast<std::uint16_t>(100 + i);
      mbufs[i].nb_segs = 1;
      mbufs[i].port = UINT16_MAX;
      rte_mbuf_refcnt_set(&mbufs[i], 3);
      pointers.push_back(&mbufs[i]);
    }
  }
  std::uint8_t buffer[256];
  std::vector<rte_mbuf> mbufs;
  std::vector<rte_mbuf*> pointers;
};

TEST(PlainBurst, FetchesWhereFramesBeginAndHowLongTheyAre) {
  Mbufs packets(13);
  std::uint8_t* frames[13];
  std::uint16_t lengths[13];
  EXPECT_TRUE(PlainBurst::fetch(packets.pointers.data(), 13, frames, lengths));
  for (unsigned i = 0; i < 13; ++i) {
    EXPECT_EQ(frames[i], packets.buffer + i);
    EXPECT_EQ(lengths[i], 100 + i);
  }
  packets.mbufs[12].nb_segs = 2;
  EXPECT_FALSE(PlainBurst::fetch(packets.pointers.data(), 13, frames, lengths));
  EXPECT_TRUE(PlainBurst::fetch(packets.pointers.data(), 12, frames, lengths));
}

}  // namespace
}  // namespace warpline::router
