// SPDX-License-Identifier: Apache-2.0
#include "warpline/machine/privileges.h"

#include <gtest/gtest.h>

#include "warpline/base/scratch_folder_testing.h"

namespace warpline::machine {
namespace {

TEST(Privileges, ReadsTheEffectiveSet) {
  ScratchFolder proc;
  proc.write("self/status", "Name:\tx\nCapPrm:\tffffffffffffffff\nCapEff:\t0000000000003000\n");
  const Privileges some = read_privileges(proc.path());
  EXPECT_TRUE(some.net_raw);
  EXPECT_TRUE(some.net_admin);
  EXPECT_FALSE(some.sys_admin);
  EXPECT_FALSE(some.ipc_lock);
  EXPECT_FALSE(read_privileges("/nonexistent").net_raw);
}

TEST(Privileges, AUserNamespaceGivesNoneOverTheMachine) {
  ScratchFolder proc;
  proc.write("self/status", "CapEff:\tffffffffffffffff\n");
  proc.write("self/uid_map", "         0          0 4294967295\n");
  EXPECT_TRUE(read_privileges(proc.path()).ipc_lock);
  EXPECT_TRUE(read_privileges(proc.path()).sys_admin);
  proc.write("self/uid_map", "         0     100000      65536\n");
  EXPECT_FALSE(read_privileges(proc.path()).ipc_lock);
  EXPECT_FALSE(read_privileges(proc.path()).sys_admin);
  EXPECT_TRUE(read_privileges(proc.path()).net_raw);
}

}  // namespace
}  // namespace warpline::machine
