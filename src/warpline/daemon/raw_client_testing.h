// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "warpline/daemon/attachment.h"

namespace warpline::daemon {

/// The client's end of an area without a library: it writes whatever a test wants.
class RawClient {
 public:
  explicit RawClient(const ClientLimits& limits) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) std::abort();
    socket = ends[0];
    daemon = Attachment::make(limits, {1, 2}, ends[1]).value();
    layout = client::AreaLayout::of(daemon->facts());
    indices = reinterpret_cast<client::AreaIndices*>(daemon->memory().data() + client::AreaLayout::kIndices);
  }
  ~RawClient() {
    if (socket >= 0) ::close(socket);
  }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  void hang_up() { ::close(std::exchange(socket, -1)); }

  /// Writes an entry and counts it.
  void submit(const client::Submission& submission) {
    const std::uint64_t place = indices->submission_tail & (daemon->facts().submissions - 1);
    std::memcpy(at(layout.submissions + place * sizeof(submission)), &submission, sizeof(submission));
    client::store_release(indices->submission_tail, indices->submission_tail + 1);
  }
  /// What has come, all of it: a ring of it at most, whatever a test has written over the indices.
  std::vector<client::AreaCompletion> poll() {
    std::vector<client::AreaCompletion> all;
    while (client::load_acquire(indices->completion_tail) != indices->completion_head &&
           all.size() < daemon->facts().completions) {
      const std::uint64_t place = indices->completion_head & (daemon->facts().completions - 1);
      all.push_back(client::copy_once<client::AreaCompletion>(at(layout.completions + place * sizeof(all[0]))));
      client::store_release(indices->completion_head, indices->completion_head + 1);
    }
    return all;
  }

  void connect(std::uint32_t session, const message::PeerAddress& peer, std::uint64_t tag = 0) {
    client::Submission submission;
    submission.operation = client::Operation::connect;
    submission.session = session;
    submission.tag = tag;
    std::memcpy(submission.address, peer.ip.data(), peer.ip.size());
    submission.port = peer.port;
    submit(submission);
  }
  void request(std::uint32_t slot, std::string_view text, std::uint16_t code = 0, std::uint64_t tag = 0) {
    std::memcpy(at(layout.room(slot, false)), text.data(), text.size());
    client::Submission submission;
    submission.operation = client::Operation::request;
    submission.slot = slot;
    submission.code = code;
    submission.tag = tag;
    submission.length = static_cast<std::uint32_t>(text.size());
    submit(submission);
  }
  void listen(std::uint16_t first, std::uint32_t codes, std::uint64_t tag = 0) {
    client::Submission submission;
    submission.operation = client::Operation::listen;
    submission.code = first;
    submission.length = codes;
    submission.tag = tag;
    submit(submission);
  }
  void answer(std::uint32_t slot, std::string_view text, std::uint16_t code = 0) {
    std::memcpy(at(layout.room(std::uint64_t{daemon->facts().calls} + slot, true)), text.data(), text.size());
    client::Submission submission;
    submission.operation = client::Operation::answer;
    submission.slot = slot;
    submission.code = code;
    submission.length = static_cast<std::uint32_t>(text.size());
    submit(submission);
  }
  void simple(client::Operation operation, std::uint32_t slot, std::uint32_t session = 0) {
    client::Submission submission;
    submission.operation = operation;
    submission.slot = slot;
    submission.session = session;
    submit(submission);
  }
  /// What came back in a call's room.
  [[nodiscard]] std::string response(std::uint32_t slot, std::uint32_t length) {
    return {reinterpret_cast<const char*>(at(layout.room(slot, true))), length};
  }
  /// What a peer has sent.
  [[nodiscard]] std::string received(std::uint32_t slot, std::uint32_t length) {
    return {reinterpret_cast<const char*>(at(layout.room(std::uint64_t{daemon->facts().calls} + slot, false))), length};
  }
  [[nodiscard]] std::uint8_t* at(std::uint64_t offset) { return daemon->memory().data() + offset; }

  int socket = -1;
  std::unique_ptr<Attachment> daemon;
  client::AreaLayout layout;
  client::AreaIndices* indices = nullptr;
};

}  // namespace warpline::daemon
