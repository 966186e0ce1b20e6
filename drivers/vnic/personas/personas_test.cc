// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>
#include <set>

#include "vnic/common/offloads.h"
#include "vnic/personas/persona.h"

namespace warpline::vnic {
namespace {

TEST(Personas, AreFoundByName) {
  ASSERT_NE(find_persona(""), nullptr);
  EXPECT_EQ(find_persona(""), personas().data());
  EXPECT_EQ(find_persona("e1000"), nullptr);
  std::set<std::string_view> names;
  for (const Persona& persona : personas()) {
    EXPECT_EQ(find_persona(persona.name), &persona);
    names.insert(persona.name);
  }
  EXPECT_EQ(names.size(), personas().size());
}

TEST(Personas, HaveNothingThatNetVnicHasNot) {
  const Persona& own = *find_persona("");
  for (const Persona& persona : personas()) {
    SCOPED_TRACE(persona.name);
    EXPECT_EQ(persona.rx_offloads & ~own.rx_offloads, 0U);
    EXPECT_EQ(persona.tx_offloads & ~own.tx_offloads, 0U);
    EXPECT_EQ(persona.rx_queue_offloads & ~persona.rx_offloads, 0U);
    EXPECT_EQ(persona.tx_queue_offloads & ~persona.tx_offloads, 0U);
    EXPECT_EQ(persona.rss_fields & ~own.rss_fields, 0U);
    EXPECT_LE(persona.most_mtu, kMaxMtu);
    EXPECT_LE(persona.rx_queues, kMaxQueues);
    EXPECT_LE(persona.tx_queues, kMaxQueues);
    EXPECT_LE(persona.rss_entries, own.rss_entries);
    for (const RingLimits& ring : {persona.rx_ring, persona.tx_ring}) {
      EXPECT_GE(ring.least, kMinRing);
      EXPECT_LE(ring.most, kMaxRing);
      EXPECT_EQ(ring.least % ring.multiple, 0);
    }
    EXPECT_TRUE(std::has_single_bit(persona.rx_buffer_unit));
    EXPECT_EQ((persona.rx_offloads & RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT) != 0, persona.splits != Splits::none);
  }
}

TEST(Personas, MakeOfRingsWhatTheirDriversDo) {
  const auto rings = [](std::string_view name, std::uint16_t asked) {
    return ring_in_force(*find_persona(name), asked);
  };
  EXPECT_EQ(rings("", 1000), 1000);
  EXPECT_EQ(rings("mlx5", 1000), 1024);
  EXPECT_EQ(rings("ena", 1000), 0);
  EXPECT_EQ(rings("ena", 512), 512);
  EXPECT_EQ(rings("vmxnet3", 1000), 992);
  EXPECT_EQ(rings("virtio", 1000), 256);
  EXPECT_EQ(rings("virtio", 64), 64);
}

}  // namespace
}  // namespace warpline::vnic
