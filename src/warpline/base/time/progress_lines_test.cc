// SPDX-License-Identifier: Apache-2.0
#include "warpline/base/time/progress_lines.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>

namespace warpline {
namespace {

using std::chrono::seconds;

/// The lines of ten parts of two seconds each, with `output` as the place of them.
void tell_ten_parts(const ProgressOutput& output, int seconds_a_part) {
  const ProgressLines::Clock::time_point begin{};
  ProgressLines progress("table", 10, output, begin);
  for (int part = 1; part <= 10; ++part) progress.step(begin + seconds(part * seconds_a_part));
}

std::string read_all(int file) {
  std::string text(4096, 0);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(read(file, text.data(), text.size()), 0)));
  return text;
}

TEST(ProgressLines, InALogAreALineAnInterval) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_NONBLOCK), 0);
  tell_ten_parts(ProgressOutput(ends[1]), 2);
  EXPECT_EQ(read_all(ends[0]),
            "table: 3 of 10, 14 s left [######..............]\n"
            "table: 6 of 10, 8 s left [############........]\n"
            "table: 9 of 10, 2 s left [##################..]\n"
            "table: 10 of 10 [####################]\n");
  for (const int end : ends) close(end);
}

TEST(ProgressLines, WhatTakesShortIsQuiet) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_NONBLOCK), 0);
  tell_ten_parts(ProgressOutput(ends[1]), 0);
  EXPECT_EQ(read_all(ends[0]), "");
  for (const int end : ends) close(end);
}

/// What is written to a terminal comes to its other end a while later, and perhaps in parts.
void expect_shown(int master, const std::string& text) {
  std::string shown;
  while (shown.size() < text.size()) {
    pollfd wait{.fd = master, .events = POLLIN, .revents = 0};
    if (poll(&wait, 1, 10'000) != 1) break;
    shown += read_all(master);
  }
  EXPECT_EQ(shown, text);
}

TEST(ProgressLines, OnATerminalAreOneLineThatFitsAndGoes) {
  const int master = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
  ASSERT_GE(master, 0);
  ASSERT_EQ(grantpt(master) + unlockpt(master), 0);
  const int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
  ASSERT_GE(slave, 0);
  const winsize size{.ws_row = 24, .ws_col = 32, .ws_xpixel = 0, .ws_ypixel = 0};
  ASSERT_EQ(ioctl(slave, TIOCSWINSZ, &size), 0);
  const ProgressLines::Clock::time_point begin{};
  {
    ProgressLines progress("table", 10, ProgressOutput(slave), begin);
    for (int part = 1; part <= 3; ++part) progress.step(begin + seconds(part * 3));
    expect_shown(master,
                 "\rtable: 2 of 10, 24 s left [####\x1b[K"
                 "\rtable: 3 of 10, 21 s left [####\x1b[K");
    progress.clear();
    expect_shown(master, "\r\x1b[K");
    progress.expect(1);
    progress.step(begin + seconds(12));
    expect_shown(master, "\rtable: 4 of 4 [################\x1b[K");
  }
  expect_shown(master, "\r\x1b[K");
  close(slave);
  close(master);
}

TEST(ProgressLines, AnyTimeThatIsLeft) {
  EXPECT_EQ(progress_line("a", 1, 3, seconds(50)), "a: 1 of 3, 1 min 40 s left [######..............]");
  EXPECT_EQ(progress_line("a", 1, 11, seconds(1000)), "a: 1 of 11, 2 h 46 min left [#...................]");
  EXPECT_EQ(progress_line("a", 5, 9, seconds(5), "s"), "a: 5 of 9 s, 4 s left [###########.........]");
  EXPECT_EQ(progress_line("a", 0, 3, seconds(1)), "a: 0 of 3 [....................]");
  EXPECT_EQ(progress_line("a", 0, 0, seconds(1)), "a: 0 of 0 [####################]");
}

}  // namespace
}  // namespace warpline
