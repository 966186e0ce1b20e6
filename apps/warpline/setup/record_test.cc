// SPDX-License-Identifier: Apache-2.0
#include "setup/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "setup/made_machine_testing.h"

namespace warpline::setup {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class SetupRecordTest : public testing::Test {
 protected:
  Result<void> give_nic() { return carry_out(machine_, "nic", *plan_nic(machine_, kNic)); }
  Result<void> reserve(std::uint64_t mebibytes) {
    return carry_out(machine_, "pages", *plan_hugepages(machine_, {.memory = Bytes{mebibytes << 20}}));
  }
  std::string pages() { return machine_.read("/" + kPool + "/nr_hugepages"); }

  ScratchFolder root_;
  MadeMachine machine_{root_.path()};
};

TEST_F(SetupRecordTest, ANicGoesToVfioAndBack) {
  machine_.add_driver("vfio-pci");
  machine_.add_function(kNic, "e1000e");
  ASSERT_TRUE(give_nic().ok());
  EXPECT_EQ(machine_.driver(kNic), "vfio-pci");
  EXPECT_TRUE(give_nic().ok());  // nothing is to be done, and what was there before is known still
  const Result<std::vector<Before>> back = undo(machine_, "nic");
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_THAT(*back, SizeIs(1));
  EXPECT_EQ(machine_.driver(kNic), "e1000e");
  EXPECT_EQ(machine_.read("/sys/bus/pci/devices/0000:01:00.0/driver_override"), "(null)\n");
  EXPECT_FALSE(machine_.exists("/var/lib/warpline"));
  EXPECT_THAT(*undo(machine_, "nic"), IsEmpty());
}

TEST_F(SetupRecordTest, ANicThatNobodyHadIsNobodysAgain) {
  machine_.add_driver("vfio-pci");
  machine_.add_function(kNic, "");
  ASSERT_TRUE(give_nic().ok());
  ASSERT_TRUE(undo(machine_, "nic").ok());
  EXPECT_EQ(machine_.driver(kNic), "");
}

TEST_F(SetupRecordTest, ANicThatWasPulledOutIsNoError) {
  machine_.add_driver("vfio-pci");
  machine_.add_function(kNic, "e1000e");
  ASSERT_TRUE(give_nic().ok());
  std::filesystem::remove_all(root_.path() / "sys/bus/pci/devices/0000:01:00.0");
  EXPECT_TRUE(undo(machine_, "nic").ok());
}

TEST_F(SetupRecordTest, ADriverThatDoesNotTakeItLeavesItWhereItWas) {
  machine_.add_function(kNic, "e1000e");
  Plan plan = *plan_nic(machine_, kNic);
  EXPECT_THAT(carry_out(machine_, "nic", plan).error().fix, HasSubstr("modprobe vfio-pci"));
  plan.beforehand.clear();
  const Result<void> done = carry_out(machine_, "nic", plan);
  EXPECT_EQ(done.error().kind, ErrorKind::environment);
  EXPECT_THAT(done.error().message(), HasSubstr("e1000e now"));
  EXPECT_EQ(machine_.driver(kNic), "e1000e");
  EXPECT_FALSE(machine_.exists(record_path("nic")));
}

TEST_F(SetupRecordTest, PagesAreWhatTheyWereBeforeTheFirstTime) {
  machine_.add_hugepages(kPool, 7, 7);
  ASSERT_TRUE(reserve(64).ok());
  EXPECT_EQ(pages(), "32\n");
  ASSERT_TRUE(reserve(1024).ok());
  ASSERT_TRUE(undo(machine_, "pages").ok());
  EXPECT_EQ(pages(), "7\n");
}

TEST_F(SetupRecordTest, TooFewPagesAreGivenBack) {
  machine_.add_hugepages(kPool, 7, 7);
  machine_.set_most_pages(20);
  const Result<void> done = reserve(64);
  EXPECT_EQ(done.error().kind, ErrorKind::environment);
  EXPECT_THAT(done.error().why, HasSubstr("20"));
  EXPECT_EQ(pages(), "7\n");
  EXPECT_FALSE(machine_.exists(record_path("pages")));
}

TEST_F(SetupRecordTest, AUserHasWhatHeHadBefore) {
  machine_.write("dev/vfio/12", "");
  machine_.write("etc/security/limits.d/warpline.conf", "* - memlock 4\n");
  ASSERT_TRUE(carry_out(machine_, "user", *plan_user(machine_, "nobody")).ok());
  EXPECT_EQ(*machine_.owner("/dev/vfio/12"), 65534U);
  EXPECT_THAT(machine_.read("/etc/udev/rules.d/60-warpline.rules"), HasSubstr("nobody"));
  ASSERT_TRUE(undo(machine_, "user").ok());
  EXPECT_EQ(*machine_.owner("/dev/vfio/12"), 0U);
  EXPECT_FALSE(machine_.exists("/etc/udev/rules.d/60-warpline.rules"));
  EXPECT_EQ(machine_.read("/etc/security/limits.d/warpline.conf"), "* - memlock 4\n");
}

TEST_F(SetupRecordTest, WhatFailsInTheMiddleIsPutBack) {
  machine_.add_hugepages(kPool, 7, 7);
  machine_.add_function(kNic, "e1000e");
  machine_.add_driver("vfio-pci");
  machine_.refuse("drivers_probe");
  Plan plan = *plan_hugepages(machine_, {});
  plan.changes.push_back(plan_nic(machine_, kNic)->changes.front());
  EXPECT_FALSE(carry_out(machine_, "both", plan).ok());
  EXPECT_EQ(pages(), "7\n");
  EXPECT_FALSE(machine_.exists(record_path("both")));
}

TEST_F(SetupRecordTest, ARecordIsReadAsItWasWritten) {
  const std::vector<Before> record = {{{ChangeKind::owner, "/dev/vfio/1", "5"}, "0"},
                                      {{ChangeKind::file, "/etc/x", "a \"b\"\n"}, ""}};
  EXPECT_EQ(*parse_record(to_text(record)), record);
}

TEST_F(SetupRecordTest, AnythingElseIsRefusedAndStays) {
  for (const char* const text :
       {"", "{", "[]", "{}", R"({"schema_version": 2, "changes": []})", R"({"schema_version": 1})",
        R"({"schema_version": 1, "changes": [1]})",
        R"({"schema_version": 1, "changes": [{"kind": "x", "path": "/a", "value": "", "before": ""}]})",
        R"({"schema_version": 1, "changes": [{"kind": "file", "path": "a", "value": "", "before": ""}]})",
        R"({"schema_version": 1, "changes": [{"kind": "file", "path": 1, "value": "", "before": ""}]})"}) {
    machine_.write(record_path("x").substr(1), text);
    const Result<std::vector<Before>> record = undo(machine_, "x");
    ASSERT_FALSE(record.ok()) << text;
    EXPECT_THAT(record.error().message(), HasSubstr(record_path("x")));
    EXPECT_TRUE(machine_.exists(record_path("x")));
  }
}

}  // namespace
}  // namespace warpline::setup
