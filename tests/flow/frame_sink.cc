// SPDX-License-Identifier: Apache-2.0
// Frames out of a UDP socket of the loopback interface, for tests.
//
//     frame_sink DESCRIPTION
//
// Prints the port that it receives on. After an empty datagram it prints a line per frame, its index, missing packets
// and payload in hexadecimal digits, and one with the names and counts of all placements.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "warpline/base/large_vector.h"
#include "warpline/flow/frame_assembler.h"

namespace {

using namespace warpline;

/// From now on the socket gives up after so many seconds of silence.
/// A socket with a large buffer, bound to any port of 127.0.0.1. -1 if there is none.
int open_socket() {
  const int socket = ::socket(AF_INET, SOCK_DGRAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int buffer = 8 << 20;
  socklen_t length = sizeof(address);
  if (setsockopt(socket, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof(buffer)) != 0) {
    setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
  }
  if (bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return -1;
  }
  std::cout << ntohs(address.sin_port) << '\n' << std::flush;
  return socket;
}

void print(flow::FrameQueue& frames, std::size_t bytes) {
  for (const flow::Frame* frame = frames.next(); frame != nullptr; frame = frames.next()) {
    const std::vector<std::uint8_t> data(frame->data, frame->data + bytes);
    fmt::print("{} {} {:02x}\n", frame->index, frame->missing, fmt::join(data, ""));
    frames.release(frame->buffer);
  }
}

int receive(const std::string& text) {
  const auto description = flow::parse_frame_description(text);
  if (!description.ok()) {
    std::cerr << description.error().message() << '\n';
    return 2;
  }
  LargeVector<std::byte> memory(64 << 20);  // in pages of its own, so that it is aligned
  auto assembler = flow::FrameAssembler::create(*description, flow::PacketForm::datagram, memory);
  if (!assembler.ok()) {
    std::cerr << assembler.error().message() << '\n';
    return 2;
  }
  const int socket = open_socket();
  if (socket < 0) {
    std::perror("socket");
    return 3;
  }
  flow::FrameQueue frames = assembler->queue();
  std::vector<std::uint8_t> packet(65536);
  for (std::uint64_t time = 0;; ++time) {
    const ssize_t length = recv(socket, packet.data(), packet.size(), 0);
    if (length <= 0) break;
    assembler->place({packet.data(), static_cast<std::size_t>(length)}, time);
    print(frames, description->frame_bytes());
  }
  assembler->flush();
  print(frames, description->frame_bytes());
  const flow::AssemblerCounts counts = assembler->counts();
  for (std::size_t i = 0; i < flow::kPlacements; ++i) {
    fmt::print("{}={} ", name(static_cast<flow::Placement>(i)), counts.placements[i]);
  }
  fmt::print("\n");
  return close(socket) == 0 ? 0 : 3;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::cerr << "frame_sink DESCRIPTION\n";
    return 2;
  }
  return receive(arguments[1]);
}
