// SPDX-License-Identifier: Apache-2.0
// Asks hello_server through a DPDK port instead of the kernel: hello_port PORT ADDRESS/LENGTH SERVER:PORT NAME...
// Such as: hello_port net_af_packet0,iface=eth1 10.0.0.2/24 10.0.0.1:24240 Ada
#include <cstdio>

#include "warpline/rpc/message_host.h"
#include "warpline/runtime/eal.h"
#include "warpline/transport/ethdev/message_port.h"

using namespace warpline;

namespace {

Result<void> ask(char** arguments, char** end) {
  port::PortSettings port;
  port.spec = arguments[0];
  WARPLINE_TRY(const InterfaceAddress here, parse_interface_address(arguments[1]));
  WARPLINE_TRY(const SocketAddress server, parse_socket_address(arguments[2]));
  port.addresses = {here};
  transport::MessagePortConfig setup;
  setup.udp_port = 49'152;
  rpc::MessageHost::Settings client;
  client.endpoint.accept = false;

  // DPDK on this thread, with no other lcores: it polls the port's one queue.
  WARPLINE_TRY(const runtime::Eal eal,
               runtime::Eal::start({}, {}, {port.spec}, transport::MessagePort::memory(port, setup)));
  WARPLINE_TRY(const auto opened, transport::MessagePort::open(port, setup));
  WARPLINE_TRY(rpc::MessageHost host, rpc::MessageHost::over(opened->queue(0), client));

  WARPLINE_TRY(const message::SessionId session, host.connect(server));
  for (char** name = arguments + 3; name != end; ++name) {
    WARPLINE_TRY(const std::string answer, host.ask(session, *name));
    std::printf("%s\n", answer.c_str());
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return std::fprintf(stderr, "usage: hello_port PORT ADDRESS/LENGTH SERVER:PORT NAME...\n"), 2;
  const Result<void> asked = ask(argv + 1, argv + argc);
  if (asked) return 0;
  std::fprintf(stderr, "%s\n", asked.error().message().c_str());
  return static_cast<int>(asked.error().kind);
}
