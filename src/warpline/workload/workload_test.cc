// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "warpline/base/property_testing.h"
#include "warpline/packet/frame_testing.h"
#include "warpline/workload/with_workload.h"

namespace warpline::workload {
namespace {

packet::FrameBytes udp_frame(std::size_t payload, bool ipv6 = false) {
  const packet::FrameBytes datagram = packet::udp_datagram(packet::counting(payload));
  return packet::with_checksums(ipv6 ? packet::ipv6_frame(packet::kProtocolUdp, datagram)
                                     : packet::ipv4_frame(packet::kProtocolUdp, datagram));
}

packet::FrameBytes with_tags(packet::FrameBytes frame, unsigned tags) {
  for (unsigned i = 0; i < tags; ++i) frame = packet::tagged(frame, packet::kEtherTypeVlan, 7);
  return frame;
}

template <typename Work>
Verdict judge(Work&& work, const packet::FrameBytes& bytes) {
  packet::SegmentedFrame frame(bytes);
  return work(frame.ref());
}

TEST(NoWork, ForwardsWhateverItIs) {
  EXPECT_EQ(judge(NoWork{}, {1}), Verdict::forward);
  EXPECT_EQ(judge(NoWork{}, udp_frame(20000)), Verdict::forward);
}

TEST(MacSwap, ExchangesTheAddressesAndNothingElse) {
  const packet::FrameBytes before = udp_frame(18);
  packet::SegmentedFrame cut(before);
  EXPECT_EQ(MacSwap{}(cut.ref()), Verdict::forward);
  packet::FrameBytes expected = before;
  std::swap_ranges(expected.begin(), expected.begin() + 6, expected.begin() + 6);
  EXPECT_EQ(cut.bytes(), expected);
}

TEST(MacSwap, ReachesAcrossSegments) {
  packet::FrameBytes expected = udp_frame(18);
  std::swap_ranges(expected.begin(), expected.begin() + 6, expected.begin() + 6);
  for (std::uint32_t first = 0; first <= 14; ++first) {
    packet::SegmentedFrame cut(udp_frame(18), {first, 1, 45 - first});
    EXPECT_EQ(MacSwap{}(cut.ref()), Verdict::forward);
    EXPECT_EQ(cut.bytes(), expected) << "first segment of " << first;
  }
}

TEST(MacSwap, LeavesARuntAlone) {
  const packet::FrameBytes runt(13, 0x5a);
  packet::SegmentedFrame whole(runt);
  EXPECT_EQ(MacSwap{}(whole.ref()), Verdict::runt);
  EXPECT_EQ(whole.bytes(), runt);
  packet::SegmentedFrame cut(runt, {6});
  EXPECT_EQ(MacSwap{}(cut.ref()), Verdict::runt);
  EXPECT_EQ(cut.bytes(), runt);
}

TEST(Count, TellsKindsApartAndForwardsAll) {
  Count count;
  const packet::FrameBytes udp = udp_frame(18);
  packet::Ipv4Header fragment;
  fragment.more_fragments = true;
  const std::vector<packet::FrameBytes> frames{udp,
                                               udp_frame(40, true),
                                               with_tags(udp, 2),
                                               packet::ipv4_frame(89, packet::counting(20)),  // OSPF
                                               packet::ipv4_frame(packet::kProtocolUdp, packet::counting(24), fragment),
                                               packet::arp_frame({}),
                                               packet::ethernet_frame(0x9999, packet::counting(46)),
                                               packet::FrameBytes(13),
                                               packet::ethernet_frame(packet::kEtherTypeIpv4, packet::FrameBytes(46))};
  std::uint64_t bytes = 0;
  for (const packet::FrameBytes& frame : frames) {
    EXPECT_EQ(judge(count, frame), Verdict::forward);
    bytes += frame.size();
  }
  const FrameTally& tally = count.tally();
  EXPECT_EQ(tally.packets, frames.size());
  EXPECT_EQ(tally.bytes, bytes);
  EXPECT_EQ(tally.of(packet::L3Kind::ipv4), 4U);
  EXPECT_EQ(tally.of(packet::L3Kind::ipv6), 1U);
  EXPECT_EQ(tally.of(packet::L3Kind::arp), 1U);
  EXPECT_EQ(tally.of(packet::L3Kind::none), 3U);
  EXPECT_EQ(tally.of(packet::L4Kind::udp), 3U);
  EXPECT_EQ(tally.of(packet::L4Kind::none), 6U);
  EXPECT_EQ(tally.fragments, 1U);
  EXPECT_EQ(tally.vlan_tagged, 1U);
  EXPECT_EQ(tally.malformed, 2U);
}

TEST(Count, MergesToWhatOneWouldHaveCounted) {
  Count one;
  Count left;
  Count right;
  for (const packet::FrameBytes& frame :
       {udp_frame(18), packet::FrameBytes(13), udp_frame(40, true), with_tags(udp_frame(9), 1)}) {
    judge(one, frame);
    judge(frame.size() % 2 == 0 ? left : right, frame);
  }
  left.merge(right);
  EXPECT_EQ(left.tally(), one.tally());
}

TEST(FrameLimits, HoldToTheMtuWhateverTheTags) {
  FrameLimits<MacSwap> limits({}, 1500);
  for (unsigned tags = 0; tags <= 2; ++tags) {
    EXPECT_EQ(judge(limits, with_tags(udp_frame(1472), tags)), Verdict::forward) << tags;
    EXPECT_EQ(judge(limits, with_tags(udp_frame(1473), tags)), Verdict::giant) << tags;
  }
  EXPECT_EQ(judge(limits, with_tags(udp_frame(1472), 3)), Verdict::giant) << "a third tag is payload";
  EXPECT_EQ(judge(limits, packet::FrameBytes(14)), Verdict::forward);
  EXPECT_EQ(judge(limits, packet::FrameBytes(13)), Verdict::runt);
  EXPECT_EQ(judge(limits, packet::FrameBytes(1)), Verdict::runt);
}

TEST(FrameLimits, NothingFollowsAGiantOrARunt) {
  FrameLimits<Count> limits({}, 100);
  judge(limits, udp_frame(200));
  judge(limits, packet::FrameBytes(13));
  EXPECT_EQ(limits.work().tally().packets, 0U);
  judge(limits, udp_frame(50));
  FrameLimits<Count> sum({}, 100);
  sum.merge(limits);
  EXPECT_EQ(sum.work().tally().packets, 1U);
}

TEST(FrameLimits, TagsBeyondATinyMtuAreNoOverflow) {
  FrameLimits<NoWork> limits({}, 0);
  EXPECT_EQ(judge(limits, packet::FrameBytes(14)), Verdict::forward);
  packet::FrameBytes cut_short(16);
  cut_short[12] = 0x81;
  EXPECT_EQ(judge(limits, cut_short), Verdict::forward);
  EXPECT_EQ(judge(limits, packet::FrameBytes(16)), Verdict::giant);
}

/// Time that passes only by being looked at.
struct FakeTicks {
  std::uint64_t* time;
  std::uint64_t step;
  std::uint64_t now() { return *time += step; }
};

TEST(Spin, OccupiesItsWorkerForTheTicksAskedAndNoLonger) {
  for (const std::uint64_t asked : {0U, 1U, 7U, 1000U}) {
    for (const std::uint64_t step : {1U, 3U, 50U}) {
      std::uint64_t time = 0 - std::uint64_t{20};  // the counter wraps on the way
      Spin<FakeTicks> spin{asked, 0, {&time, step}};
      const std::uint64_t begin = time + step;
      EXPECT_EQ(judge(spin, udp_frame(1)), Verdict::forward);
      EXPECT_GE(time - begin, asked);
      EXPECT_LE(time - begin, asked + step);
    }
  }
}

std::vector<WorkloadKind> all_kinds() {
  std::vector<WorkloadKind> kinds;
  for (std::size_t i = 0; i < kEnumNames<WorkloadKind>.size(); ++i) kinds.push_back(static_cast<WorkloadKind>(i));
  return kinds;
}

TEST(Workload, EachKindIsCalledWithItsOwnType) {
  for (const WorkloadKind kind : all_kinds()) {
    const WorkloadKind got = with_workload(kind, Nanos{100}, 1500, [](auto work) {
      static_assert(Workload<decltype(work)>);
      return decltype(work)::kKind;
    });
    EXPECT_EQ(got, kind);
    const Verdict giant = with_workload(kind, Nanos{0}, 1000, [](auto work) { return judge(work, udp_frame(1400)); });
    EXPECT_EQ(giant, traits_of(kind).any_length ? Verdict::forward : Verdict::giant);
  }
}

/// A frame, sound or damaged, and where to cut it.
struct Damage {
  packet::FrameBytes bytes;
  std::vector<std::uint32_t> lengths;
};

Damage any_frame() {
  packet::FrameBytes bytes = with_tags(udp_frame(*rc::gen::inRange<std::size_t>(0, 80), *rc::gen::arbitrary<bool>()),
                                       *rc::gen::inRange<unsigned>(0, 4));
  const auto hits = *rc::gen::weightedElement<int>({{2, 0}, {3, 1}, {1, 6}});
  for (int i = 0; i < hits; ++i)
    bytes[*rc::gen::inRange<std::size_t>(0, bytes.size())] = *rc::gen::arbitrary<std::uint8_t>();
  if (*rc::gen::inRange(0, 4) == 0) bytes.resize(*rc::gen::inRange<std::size_t>(0, bytes.size() + 1));

  std::vector<std::uint32_t> lengths;
  auto left = static_cast<std::uint32_t>(bytes.size());
  const auto pieces = *rc::gen::inRange<std::size_t>(1, kMaxSegments + 1);
  for (std::size_t i = 1; i < pieces; ++i) {
    const auto bound = std::min<std::uint32_t>(left, *rc::gen::element<std::uint32_t>(2, 10, 60));
    lengths.push_back(*rc::gen::inRange<std::uint32_t>(0, bound + 1));
    left -= lengths.back();
  }
  return {bytes, lengths};
}

template <typename Work>
void same_however_cut(Work on_whole, const Damage& damage) {
  Work on_cut = on_whole;
  packet::SegmentedFrame whole(damage.bytes);
  packet::SegmentedFrame cut(damage.bytes, damage.lengths);
  RC_ASSERT(on_whole(whole.ref()) == on_cut(cut.ref()));
  RC_ASSERT(whole.bytes() == cut.bytes());
  if constexpr (requires { on_whole.work().tally(); }) RC_ASSERT((on_whole.work().tally() == on_cut.work().tally()));
}

WARPLINE_PROPERTY(WorkloadProperty, NoWorkloadSeesHowAFrameIsCut, ()) {
  const Damage damage = any_frame();
  for (const WorkloadKind kind : all_kinds()) {
    with_workload(kind, Nanos{0}, *rc::gen::element<std::uint16_t>(50, 1500),
                  [&](auto work) { same_however_cut(work, damage); });
  }
}

/// kHeaders is the length of an Ethernet header with as many tags as are looked at.
constexpr std::size_t kHeaders =
    packet::EthernetView::kHeaderLength + packet::kMaxVlanTags * packet::VlanView::kHeaderLength;

/// What a functor says of itself is what it does: a frame, and the bytes behind its Ethernet header, are as its traits
/// say.
template <typename Work>
void does_as_it_says(Work work, const packet::FrameBytes& before) {
  constexpr WorkloadTraits kTraits = kTraitsOf<Work>;
  packet::SegmentedFrame frame(before);
  const bool forwarded = work(frame.ref()) == Verdict::forward;
  packet::FrameBytes expected = before;
  if (kTraits.effect == FrameEffect::macs_swapped && forwarded) packet::swap_macs(expected.data());
  if (kTraits.effect != FrameEffect::unknown) RC_ASSERT(frame.bytes() == expected);
  if (kTraits.access == FrameAccess::nothing) RC_ASSERT(forwarded);
  if (kTraits.access == FrameAccess::everything || before.size() < kHeaders) return;

  // With other bytes behind its headers it does the same.
  packet::FrameBytes other = before;
  for (std::size_t i = kHeaders; i < other.size(); ++i) other[i] ^= 0x5a;
  const packet::FrameBytes tail(other.begin() + kHeaders, other.end());
  packet::SegmentedFrame disguised(other);
  RC_ASSERT((work(disguised.ref()) == Verdict::forward) == forwarded);
  const packet::FrameBytes after = disguised.bytes();
  RC_ASSERT(packet::FrameBytes(after.begin() + kHeaders, after.end()) == tail);
}

WARPLINE_PROPERTY(WorkloadProperty, AWorkloadDoesWhatItsTraitsSay, ()) {
  const packet::FrameBytes frame = any_frame().bytes;
  for (const WorkloadKind kind : all_kinds()) {
    with_workload(kind, Nanos{0}, 1500, [&](auto work) { does_as_it_says(work, frame); });
  }
}

TEST(Workload, TraitsAreThoseOfTheFunctorBehindItsLimits) {
  EXPECT_EQ(traits_of(WorkloadKind::none).access, FrameAccess::nothing);
  EXPECT_EQ(traits_of(WorkloadKind::spin).access, FrameAccess::headers) << "its limits look at the tags";
  EXPECT_EQ(traits_of(WorkloadKind::mac_swap).effect, FrameEffect::macs_swapped);
  EXPECT_EQ(traits_of(WorkloadKind::checksum).access, FrameAccess::everything);
  EXPECT_TRUE(traits_of(WorkloadKind::spin).takes_time);
  EXPECT_EQ(traits_of(WorkloadKind::user).effect, FrameEffect::unknown) << "which says nothing of itself";
}

}  // namespace
}  // namespace warpline::workload
