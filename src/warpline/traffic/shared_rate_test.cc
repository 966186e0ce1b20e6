// SPDX-License-Identifier: Apache-2.0
#include "warpline/traffic/shared_rate.h"

#include <gtest/gtest.h>

namespace warpline::traffic {
namespace {

TEST(SharedRate, SaysWhatIsNewOfEachKind) {
  SharedRate shared{PacketRate{1000}};
  Rate rate = PacketRate{1000};
  EXPECT_FALSE(shared.changed(rate));
  for (const Rate& next : {Rate{BitRate{1000}}, Rate{}, Rate{PacketRate{7}}, Rate{PacketRate{8}}}) {
    shared.store(next);
    EXPECT_TRUE(shared.changed(rate));
    EXPECT_EQ(rate, next);
    EXPECT_FALSE(shared.changed(rate));
  }
}

}  // namespace
}  // namespace warpline::traffic
