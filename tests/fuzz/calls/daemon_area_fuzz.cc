// SPDX-License-Identifier: Apache-2.0
// A daemon beside a client that writes whatever it likes into the memory that they share, and onto its socket: another
// client is served as ever, every call of that one ends, and all that the liar took comes back.

#include <sys/socket.h>

#include <array>
#include <memory>
#include <vector>

#include "fuzz/packet_input.h"
#include "warpline/daemon/broker.h"
#include "warpline/daemon/raw_client_testing.h"
#include "warpline/message/loopback_testing.h"

using namespace warpline;

namespace {

constexpr daemon::ClientLimits kLimits{.calls = 4, .requests = 3, .sessions = 2, .message_bytes = 300};
constexpr std::uint16_t kEcho = 77;  ///< a code of the peer's
constexpr std::uint16_t kOwn = 5;    ///< a code of the honest client's

/// A daemon with two clients, and a peer that echoes, and asks.
struct Talk {
  Talk() : settings(make_settings()) {
    message::EndpointConfig small;
    small.max_sessions = 4;
    small.max_messages = 64;
    small.max_sent_packets = 512;
    small.receive_bytes = 1U << 20;
    small.peer_timeout = small.message_timeout = small.connect_timeout = Nanos{1'000'000'000};
    small.keepalive = Nanos{400'000'000};
    config = daemon::with_room_for_clients(small, settings).value();
    host = &net.add(config);
    peer = &net.add(small);
    broker = std::make_unique<daemon::Broker>(host->endpoint, config, settings);
    host->handle = [this](const message::MessageEvent& event) {
      broker->handle(event, net.now);
      return true;
    };
    host->work = [this] {
      const bool worked = broker->turn(net.now);
      broker->notify();
      return worked;
    };
    peer->handle = [this](const message::MessageEvent& event) {
      if (event.kind == message::EventKind::request && event.code == kEcho)
        (void)peer->endpoint.respond(event.id, {event.data, event.length}, {.copy = true}, net.now);
      else if (event.kind == message::EventKind::request || event.kind == message::EventKind::message)
        (void)peer->endpoint.release(event.id, net.now);
      return true;
    };
    honest = std::make_unique<daemon::RawClient>(kLimits);
    liar = std::make_unique<daemon::RawClient>(kLimits);
    broker->attach(*honest->daemon);
    broker->attach(*liar->daemon);
    honest->listen(kOwn, 1);
    honest->connect(0, peer->address);
    liar->connect(0, peer->address);
    asking = peer->endpoint.connect(host->address, {}, net.now).session;
    net.run_for({50'000'000});
    (void)honest->poll();
  }

  static daemon::DaemonSettings make_settings() {
    daemon::DaemonSettings settings;
    settings.clients = 2;
    settings.client = kLimits;
    return settings;
  }

  /// The honest client asks, and is answered, whatever the other does.
  void check_that_the_other_is_served() {
    honest->request(1, "how is it going", kEcho, 9);
    bool answered = false;
    require(net.run([&] {
      for (const client::AreaCompletion& each : honest->poll()) {
        require(each.kind == client::CompletionKind::response, "only what was asked for is told");
        require(each.tag == 9 && each.status == 0, "it is answered");
        require(honest->response(1, each.length) == "how is it going", "with what was asked");
        answered = true;
      }
      return answered;
    }),
            "the other client is served");
  }

  daemon::DaemonSettings settings;
  message::Loopback net{1};
  message::EndpointConfig config;
  message::Loopback::Host* host = nullptr;
  message::Loopback::Host* peer = nullptr;
  std::unique_ptr<daemon::Broker> broker;
  std::unique_ptr<daemon::RawClient> honest;
  std::unique_ptr<daemon::RawClient> liar;
  message::SessionId asking;
};

client::Submission submission_of(FuzzInput& input) {
  client::Submission submission;
  submission.operation = static_cast<client::Operation>(input.byte() % 10);
  submission.slot = input.byte() % 6;
  submission.session = input.byte() % 3;
  submission.length = input.byte() * (input.byte() % 16 == 0 ? 0x01010101U : 1U);
  const std::array<std::uint16_t, 4> codes{kEcho, kOwn, 6, 0xffff};
  submission.code = codes[input.byte() % codes.size()];
  submission.flags = input.byte();
  submission.patience =
      static_cast<std::int64_t>(input.byte() * (input.byte() % 8 == 0 ? 0x0101010101010101U : 100'000U));
  submission.address[10] = submission.address[11] = 0xff;
  const std::array<std::uint8_t, 4> ip{10, 0, 0, static_cast<std::uint8_t>(1 + input.byte() % 3)};
  std::copy(ip.begin(), ip.end(), submission.address + 12);
  submission.port = input.byte() % 8 == 0 ? 0 : 4000;
  return submission;
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  Talk talk;
  daemon::RawClient& liar = *talk.liar;
  bool gone = false;
  for (int step = 0; step < 200 && !gone; ++step) {
    const std::uint8_t action = input.byte();
    if (action == 0) break;
    switch (action % 12) {
      case 1:
      case 2:
      case 3:
      case 4:
        liar.submit(submission_of(input));
        break;
      case 5:  // anywhere in the rings
        *liar.at(client::AreaLayout::kRings + (input.byte() * 256U + input.byte()) %
                                                  (liar.layout.rooms - client::AreaLayout::kRings)) = input.byte();
        break;
      case 6:  // in the indices, its own and the daemon's
        *liar.at(client::AreaLayout::kIndices + input.byte() % 128U) = input.byte();
        break;
      case 7:
        (void)liar.poll();
        break;
      case 8: {
        const std::vector<std::uint8_t> bytes(input.byte() % 200U, 1);
        (void)::send(liar.socket, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        (void)liar.daemon->read_socket();
        break;
      }
      case 9: {  // a peer asks for what the liar may listen for
        const std::vector<std::uint8_t> bytes(input.byte() * 2U, 2);
        const message::ConstBuffer message{bytes.data(), static_cast<std::uint32_t>(bytes.size())};
        message::RequestOptions options{.code = 6, .copy = true};
        if ((action & 64) != 0) options.deadline = {talk.net.now.value + input.byte() * 100'000};
        (void)talk.peer->endpoint.request(talk.asking, message, {}, options, talk.net.now);
        break;
      }
      case 10:
        talk.net.run_for({input.byte() * 10'000});
        break;
      default:
        gone = (action & 128) != 0;
        if (gone) talk.broker->leave(*liar.daemon, talk.net.now);
        talk.net.settle();
    }
  }
  talk.check_that_the_other_is_served();
  talk.broker->leave_all(talk.net.now);
  talk.net.run_for({3'000'000'000});
  int left = 0;
  while (talk.broker->done_with() != nullptr) ++left;
  require(left == 2 && talk.broker->empty(), "both have left");
  (void)talk.peer->endpoint.close(talk.asking, talk.net.now);
  talk.net.run_for({3'000'000'000});
  const message::EndpointFacts facts = talk.host->endpoint.facts();
  require(facts.free_messages == talk.config.max_messages, "all messages came back");
  require(facts.free_sessions == talk.config.max_sessions, "all sessions came back");
  require(facts.free_receive_bytes == talk.config.receive_bytes, "all memory came back");
  return 0;
}
