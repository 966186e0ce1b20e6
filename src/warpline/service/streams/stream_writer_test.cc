// SPDX-License-Identifier: Apache-2.0
#include "warpline/service/streams/stream_writer.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>
#include <iterator>
#include <thread>

#include "warpline/base/scratch_folder_testing.h"

namespace warpline::service {
namespace {

const SocketAddress kPeer{Ipv4Address{{10, 0, 0, 1}}, 40'000};
const SocketAddress kHere{Ipv4Address{{10, 0, 0, 2}}, 5001};

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::span<const std::uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

StreamWriter::Done next_answer(StreamWriter& writer) {
  StreamWriter::Done answer;
  while (!writer.done(answer) && !writer.failed()) std::this_thread::yield();
  return answer;
}

TEST(StreamWriter, WritesEachConnectionToAFileOfItsOwn) {
  const ScratchFolder scratch;
  const std::filesystem::path folder = scratch.path() / "a" / "b";
  auto writer = StreamWriter::start(folder.string(), 2);
  ASSERT_TRUE(writer.ok());
  StreamWriter& w = **writer;
  w.begin(0, kPeer, kHere);
  w.write(0, bytes_of("one "));
  w.begin(1, {Ipv4Address{{10, 0, 0, 3}}, 1}, kHere);
  w.write(1, bytes_of("other"));
  w.write(0, bytes_of("two"));
  w.end(0);
  EXPECT_EQ(next_answer(w).length, 4U);
  EXPECT_EQ(next_answer(w).connection, 1U);
  EXPECT_EQ(next_answer(w).length, 3U);
  EXPECT_TRUE(next_answer(w).ended);
  w.stop();
  EXPECT_FALSE(w.failure());
  EXPECT_EQ(content_of(folder / "10.0.0.1_40000-10.0.0.2_5001"), "one two");
  EXPECT_EQ(content_of(folder / "10.0.0.3_1-10.0.0.2_5001"), "other");
  EXPECT_EQ(w.files(), 2U);
  EXPECT_EQ(w.bytes(), 12U);
}

TEST(StreamWriter, NumbersFilesOfEndsThatComeAgain) {
  const ScratchFolder scratch;
  auto writer = StreamWriter::start(scratch.path().string(), 1);
  ASSERT_TRUE(writer.ok());
  for (const std::string_view text : {"first", "second", "third"}) {
    (*writer)->begin(0, kPeer, kHere);
    (*writer)->write(0, bytes_of(text));
    (*writer)->end(0);
    EXPECT_EQ(next_answer(**writer).length, text.size());
    EXPECT_TRUE(next_answer(**writer).ended);
  }
  const std::string name = (scratch.path() / "10.0.0.1_40000-10.0.0.2_5001").string();
  EXPECT_EQ(content_of(name), "first");
  EXPECT_EQ(content_of(name + "-2"), "second");
  EXPECT_EQ(content_of(name + "-3"), "third");
}

TEST(StreamWriter, FailsWithAReasonWhenItsFolderIsGone) {
  const ScratchFolder scratch;
  const std::filesystem::path folder = scratch.path() / "out";
  auto writer = StreamWriter::start(folder.string(), 1);
  ASSERT_TRUE(writer.ok());
  std::filesystem::remove(folder);
  (*writer)->begin(0, kPeer, kHere);
  static_cast<void>(next_answer(**writer));
  EXPECT_TRUE((*writer)->failed());
  (*writer)->stop();
  ASSERT_TRUE((*writer)->failure());
  EXPECT_EQ((*writer)->failure()->kind, ErrorKind::environment);
  EXPECT_NE((*writer)->failure()->why.find("No such file"), std::string::npos);
  EXPECT_EQ((*writer)->failure()->fix.find("make room"), std::string::npos);
}

TEST(StreamWriter, LetsAllWritersOfTheProgramHaveTheirFiles) {
  constexpr std::uint32_t kConnections = 200;
  constexpr std::uint32_t kWriters = 3;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  if (before.rlim_max < 1024) GTEST_SKIP() << "the system lets nobody have so many files";
  const rlimit few{256, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  const ScratchFolder scratch;
  EXPECT_TRUE(StreamWriter::start(scratch.path().string(), kConnections, kWriters).ok());
  rlimit raised{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &raised), 0);
  EXPECT_GE(raised.rlim_cur, kConnections * kWriters);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(StreamWriter, RefusesWhatIsNoFolder) {
  const ScratchFolder scratch;
  std::ofstream(scratch.path() / "file") << "x";
  const auto writer = StreamWriter::start((scratch.path() / "file").string(), 1);
  ASSERT_FALSE(writer.ok());
  EXPECT_EQ(writer.error().kind, ErrorKind::environment);
}

}  // namespace
}  // namespace warpline::service
