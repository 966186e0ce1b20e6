// SPDX-License-Identifier: Apache-2.0
// Asks hello_server each line of its input, in an epoll loop of its own: printf 'Ada\nGrace\n' | epoll_loop
// ADDRESS:PORT
#include <sys/epoll.h>
#include <unistd.h>

#include <cstdio>
#include <deque>
#include <string>

#include "warpline/rpc/message_host.h"

using namespace warpline;

struct Question {
  std::string name;
  char answer[256];
};

/// In the order of the lines; one that is answered stays. This program's one thread has them.
struct Questions {
  std::deque<Question> asked;
  std::size_t ended = 0;
};

/// The end of a call: on this program's one thread, inside of turn().
void print(void* context, std::uint64_t number, const rpc::CallResult& result) {
  auto& questions = *static_cast<Questions*>(context);
  const Question& question = questions.asked[number];
  ++questions.ended;
  if (result.status == message::MessageStatus::ok) {
    std::printf("%.*s\n", static_cast<int>(result.length), question.answer);
  } else {
    std::printf("%s: %s\n", question.name.c_str(), std::string(message::name(result.status)).c_str());
  }
  std::fflush(stdout);
}

// NOLINTNEXTLINE(bugprone-exception-escape): what is thrown, for want of memory, ends it
int main(int argc, char** argv) {
  Questions questions;  // outlive the host, which ends the calls that are left
  const auto server = parse_socket_address(argc > 1 ? argv[1] : "127.0.0.1:24240");
  auto host = rpc::MessageHost::open({.endpoint = {.accept = false}});
  if (!server || !host) return 2;
  const auto session = host->connect(*server);
  const auto descriptor = host->descriptor();
  if (!session || !descriptor) return 3;

  const int epoll = epoll_create1(0);
  for (const int watched : {STDIN_FILENO, *descriptor}) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = watched}};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, watched, &event) != 0) return std::perror("epoll"), 3;
  }
  std::string typed;
  bool more = true;
  for (host->turn(); more || questions.ended < questions.asked.size();) {
    epoll_event event{};
    if (epoll_wait(epoll, &event, 1, -1) != 1) continue;
    if (event.data.fd == *descriptor) {
      if (!host->turn()) return 1;
      continue;
    }
    char bytes[4096];
    const ssize_t count = read(STDIN_FILENO, bytes, sizeof(bytes));
    more = count > 0;
    if (!more) (void)epoll_ctl(epoll, EPOLL_CTL_DEL, STDIN_FILENO, nullptr);
    typed.append(bytes, more ? static_cast<std::size_t>(count) : 0);
    for (std::size_t end; (end = typed.find('\n')) != std::string::npos; typed.erase(0, end + 1)) {
      Question& question = questions.asked.emplace_back(Question{typed.substr(0, end), {}});
      rpc::Call call{.session = *session, .patience = Nanos{5'000'000'000}};
      call.message = {reinterpret_cast<const std::uint8_t*>(question.name.data()),
                      static_cast<std::uint32_t>(question.name.size())};
      call.response = {reinterpret_cast<std::uint8_t*>(question.answer), sizeof(question.answer)};
      const std::uint64_t number = questions.asked.size() - 1;
      if (host->submit(call, {print, &questions, number}).status != message::CallStatus::ok) return 1;
    }
  }
}
