// SPDX-License-Identifier: Apache-2.0
#include "warpline/port/removal.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "port.h"
#include "warpline/port/removal_watch.h"

namespace warpline::vnic {
namespace {

void remove(const Port& port) {
  rte_eth_dev_callback_process(&rte_eth_devices[port.id()], RTE_ETH_EVENT_INTR_RMV, nullptr);
}

TEST(Removal, IsKnownFromWhenTheDriverTellsUntilOneOfThatNameIsOpenedAgain) {
  const Port port("net_vnic0");
  ASSERT_EQ(port.probed(), 0);
  port::watch_removal(port.id(), "net_vnic0");
  EXPECT_FALSE(port::any_removed());
  remove(port);
  remove(port);
  EXPECT_TRUE(port::any_removed());
  const std::vector<std::string> notes = port::removal_notes();
  ASSERT_EQ(notes.size(), 1U) << "once each";
  EXPECT_NE(notes[0].find("net_vnic0"), std::string::npos);
  port::end_removal_watch(port.id(), "net_vnic0");
  EXPECT_TRUE(port::any_removed()) << "the run's end still says so";
  port::watch_removal(port.id(), "net_vnic0");
  EXPECT_FALSE(port::any_removed());
  port::end_removal_watch(port.id(), "net_vnic0");
  remove(port);
  EXPECT_FALSE(port::any_removed()) << "nobody listens";
}

TEST(Removal, OfADeviceThatIsResetTheDriverTells) {
  const Pool pool;
  Port port("net_vnic0", "reset_frames=5");
  ASSERT_EQ(port.configure(simple(pool)), 0);
  ASSERT_EQ(rte_eth_dev_start(port.id()), 0);
  port::watch_removal(port.id(), "net_vnic0");
  send_frames(port, pool, 5);
  EXPECT_FALSE(port::any_removed());
  send_frames(port, pool, 3);
  while (!port::any_removed()) std::this_thread::yield();
  EXPECT_EQ(port.count(Count::fault_reset), 3U);
  EXPECT_NE(port::removal_notes().at(0).find("was reset"), std::string::npos);
  port::end_removal_watch(port.id(), "net_vnic0");
  ASSERT_EQ(rte_eth_dev_stop(port.id()), 0);
}

}  // namespace
}  // namespace warpline::vnic
