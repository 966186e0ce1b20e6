// SPDX-License-Identifier: Apache-2.0
// Echoes of 32 bytes through MessageHosts, for bench/message/peers. message_echo server ADDRESS:PORT; client
// ADDRESS:PORT CONNECTIONS OUTSTANDING SECONDS, over sockets; ports CONNECTIONS OUTSTANDING SECONDS, both ends in this
// process, an lcore each, over a pair of net_vnic.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "load.h"
#include "warpline/rpc/message_host.h"
#include "warpline/runtime/eal.h"
#include "warpline/runtime/workers.h"
#include "warpline/transport/ethdev/message_port.h"

namespace warpline::echo {
namespace {

using rpc::MessageHost;

constexpr std::size_t kSessions = 4096;  // of a server, some of clients that are gone

std::optional<std::size_t> answer(std::span<const std::uint8_t> request, std::span<std::uint8_t> room) {
  std::ranges::copy(request, room.begin());
  return request.size();
}

MessageHost::Settings settings(const Plan& plan, bool client) {
  MessageHost::Settings made;
  made.endpoint.accept = !client;
  made.endpoint.max_sessions = static_cast<std::uint32_t>(client ? plan.connections : kSessions);
  made.calls = static_cast<std::uint32_t>(2 * plan.slots());  // one is submitted before the last has quite ended
  if (plan.poll.count() != 0) made.poll_for = Nanos{std::chrono::nanoseconds(plan.poll).count()};
  return made;
}

/// Asks by the calls of a host, on its thread.
class Asking {
 public:
  Asking(MessageHost& host, Load& load, const SocketAddress& server)
      : host_(host), load_(load), rooms_(load.plan().slots()) {
    for (std::size_t i = 0; i < load.plan().connections; ++i) {
      const auto session = host.connect(server);
      if (!session) Load::fail(session.error().message().c_str());
      sessions_.push_back(*session);
    }
  }
  /// Until the load has ended.
  void run() {
    open_ = rooms_.size();
    for (std::size_t slot = 0; slot < rooms_.size(); ++slot) submit(slot);
    host_.run();
  }

 private:
  void submit(std::size_t slot) {
    const Content& bytes = load_.next(slot);
    const rpc::Call call{.session = sessions_[slot / load_.plan().outstanding],
                         .message = {bytes.data(), kBytes},
                         .response = {rooms_[slot].data(), kBytes}};
    if (host_.submit(call, {ended, this, slot}).status != message::CallStatus::ok) Load::fail("a call is not taken");
  }
  static void ended(void* context, std::uint64_t slot, const rpc::CallResult& result) {
    Asking& self = *static_cast<Asking*>(context);
    if (result.status != message::MessageStatus::ok) Load::fail("a call has failed");
    if (self.load_.ended(slot, result.data, result.length)) {
      self.submit(slot);
    } else if (--self.open_ == 0) {
      for (const message::SessionId session : self.sessions_)
        (void)self.host_.endpoint().close(session, self.host_.now());
      self.host_.stop();
    }
  }

  MessageHost& host_;
  Load& load_;
  std::vector<Content> rooms_;
  std::vector<message::SessionId> sessions_;
  std::size_t open_ = 0;
};

Result<void> serve(const SocketAddress& here, std::chrono::microseconds poll) {
  MessageHost::Settings made = settings({.poll = poll}, false);
  made.local = here;
  WARPLINE_TRY(MessageHost host, MessageHost::open(made));
  fmt::print("listening on port {}\n", host.port());
  std::fflush(stdout);
  host.serve(answer);
  return {};
}

Result<void> ask(const SocketAddress& server, const Plan& plan) {
  WARPLINE_TRY(MessageHost host, MessageHost::open(settings(plan, true)));
  Load load(plan);
  Asking asking(host, load, server);
  load.measure([&] { asking.run(); });
  return {};
}

Result<void> ports(const Plan& plan) {
  constexpr std::uint16_t kPort = 7000;
  WARPLINE_TRY(
      const runtime::Eal eal,
      runtime::Eal::start({.share_cores = true}, {{.name = "server"}, {.name = "client"}}, {}, Bytes{256U << 20}));
  std::unique_ptr<transport::MessagePort> wire[2];
  for (unsigned side = 0; side < 2; ++side) {
    port::PortSettings port;
    port.spec = fmt::format("net_vnic{},wire=net_vnic{}", side, 1 - side);
    port.rx_ring = 1024;
    port.tx_ring = 256;
    port.addresses = {{Ipv4Address{{10, 0, 0, static_cast<std::uint8_t>(1 + side)}}, 24}};
    WARPLINE_TRY(wire[side], transport::MessagePort::open(port, {.udp_port = kPort}));
  }
  WARPLINE_TRY(MessageHost server, MessageHost::over(wire[0]->queue(0), settings(plan, false)));
  WARPLINE_TRY(MessageHost client, MessageHost::over(wire[1]->queue(0), settings(plan, true)));
  Load load(plan);
  Asking asking(client, load, {wire[0]->addresses().front().address, kPort});
  runtime::Workers workers(eal.plan());
  WARPLINE_CHECK(workers.launch(0, [&] { server.serve(answer); }));
  WARPLINE_CHECK(workers.launch(1, [&] {
    asking.run();
    server.stop();
  }));
  load.watch();
  workers.wait();
  load.print();
  return {};
}

}  // namespace
}  // namespace warpline::echo

// NOLINTNEXTLINE(bugprone-exception-escape): what is thrown ends the program
int main(int argc, char** argv) {
  using namespace warpline;
  const std::string_view what = argc > 1 ? argv[1] : "";
  Result<void> done = usage_error("message_echo", "these arguments say nothing to it",
                                  "server ADDRESS:PORT POLL_US | client ADDRESS:PORT CONNECTIONS OUTSTANDING SECONDS "
                                  "POLL_US | ports CONNECTIONS OUTSTANDING SECONDS POLL_US");
  if (what == "ports" && argc == 6) done = echo::ports(echo::parse_plan(argv + 2));
  if ((what == "server" && argc == 4) || (what == "client" && argc == 7)) {
    const auto address = parse_socket_address(argv[2]);
    done = !address    ? address.error()
           : argc == 4 ? echo::serve(*address, echo::parse_poll(argv[3]))
                       : echo::ask(*address, echo::parse_plan(argv + 3));
  }
  if (done) return 0;
  fmt::print(stderr, "{}\n", done.error().message());
  return static_cast<int>(done.error().kind);
}
