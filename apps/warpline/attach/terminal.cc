// SPDX-License-Identifier: Apache-2.0
#include "attach/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

#include "warpline/base/output.h"

namespace warpline::attach {
namespace {

// ECMA-48, and DEC's private modes as xterm has them.
constexpr const char* kBegin = "\x1b[?1049h\x1b[?25l";
constexpr const char* kEnd = "\x1b[?25h\x1b[?1049l";
constexpr const char* kHome = "\x1b[H";
constexpr const char* kClearLine = "\x1b[K";
constexpr const char* kClearBelow = "\x1b[J";

void write_out(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  flush_output(stdout);
}

}  // namespace

bool Terminal::is_there() { return isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1; }

Terminal::Terminal() {
  tcgetattr(STDIN_FILENO, &before_);
  termios raw = before_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  raw.c_cc[VSUSP] = _POSIX_VDISABLE;  // the shell would have the screen as it is
  tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  write_out(kBegin);
}

Terminal::~Terminal() {
  write_out(kEnd);
  tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

Terminal::Size Terminal::size() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {80, 24};
  return {size.ws_col, size.ws_row};
}

void Terminal::show(const std::vector<std::string>& lines) {
  std::string text = kHome;
  for (std::size_t i = 0; i < lines.size(); ++i) text += (i == 0 ? "" : "\r\n") + lines[i] + kClearLine;
  write_out(text + kClearBelow);
}

std::optional<char> Terminal::key(std::chrono::milliseconds patience) {
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  if (poll(&input, 1, static_cast<int>(patience.count())) <= 0) return std::nullopt;
  char key = 'q';
  if (read(STDIN_FILENO, &key, 1) != 1) return 'q';
  return key;
}

}  // namespace warpline::attach
