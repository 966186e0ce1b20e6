// SPDX-License-Identifier: Apache-2.0
// Echoes of 32 bytes through gRPC's asynchronous API, a completion queue and a thread at each end; bench/message/peers
// compiles it with Debian's packages. grpc_echo server ADDRESS:PORT; client ADDRESS:PORT CONNECTIONS OUTSTANDING
// SECONDS
#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "echo.grpc.pb.h"
#include "load.h"

namespace warpline::echo {
namespace {

constexpr std::size_t kWaiting = 256;  // calls that the server is ready for at once

/// The next end of a queue that is polled before the thread sleeps. False: the queue has been shut down.
bool next(grpc::CompletionQueue& queue, Patience& patience, void** tag, bool* ok) {
  while (!patience.is_over()) {
    const auto found = queue.AsyncNext(tag, ok, gpr_time_0(GPR_CLOCK_MONOTONIC));
    if (found == grpc::CompletionQueue::TIMEOUT) continue;
    patience.worked();
    return found == grpc::CompletionQueue::GOT_EVENT;
  }
  patience.worked();
  return queue.Next(tag, ok);
}

/// A call that the server waits for or answers; its messages keep their memory.
struct Served {
  std::optional<grpc::ServerContext> context;
  std::optional<grpc::ServerAsyncResponseWriter<wire::Packed>> writer;
  wire::Packed message;
  bool answered = false;

  void wait(wire::Echo::AsyncService& service, grpc::ServerCompletionQueue& queue) {
    writer.reset();
    context.emplace();
    writer.emplace(&*context);
    answered = false;
    service.RequestAsk(&*context, &message, &*writer, &queue, &queue, this);
  }
};

int serve(const char* address, std::chrono::microseconds poll) {
  grpc::ServerBuilder builder;
  wire::Echo::AsyncService service;
  int port = 0;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder.AddChannelArgument(GRPC_ARG_MINIMAL_STACK, 1);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::ServerCompletionQueue> queue = builder.AddCompletionQueue();
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) return std::fprintf(stderr, "cannot listen on %s\n", address), 3;
  std::vector<Served> calls(kWaiting);
  for (Served& call : calls) call.wait(service, *queue);
  std::printf("listening on port %d\n", port);
  std::fflush(stdout);
  Patience patience(poll);
  void* tag = nullptr;
  bool ok = false;
  while (next(*queue, patience, &tag, &ok)) {
    Served& call = *static_cast<Served*>(tag);
    if (!ok || call.answered) {
      call.wait(service, *queue);
    } else {
      call.answered = true;
      call.writer->Finish(call.message, grpc::Status::OK, &call);
    }
  }
  return 0;
}

/// A call that the client waits for.
struct Asked {
  std::optional<grpc::ClientContext> context;
  std::unique_ptr<grpc::ClientAsyncResponseReader<wire::Packed>> reader;
  wire::Packed request;
  wire::Packed answer;
  grpc::Status status;
};

int ask(const std::string& address, const Plan& plan) {
  std::vector<std::unique_ptr<wire::Echo::Stub>> stubs;
  for (std::size_t i = 0; i < plan.connections; ++i) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // each channel has a connection of its own
    arguments.SetInt(GRPC_ARG_MINIMAL_STACK, 1);
    arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
    stubs.push_back(
        wire::Echo::NewStub(grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments)));
  }
  Load load(plan);
  load.measure([&] {
    grpc::CompletionQueue queue;
    std::vector<Asked> calls(plan.slots());
    const auto begin = [&](std::size_t slot) {
      Asked& call = calls[slot];
      call.reader.reset();
      call.context.emplace();
      call.request.set_data(load.next(slot).data(), kBytes);
      call.reader = stubs[slot / plan.outstanding]->AsyncAsk(&*call.context, call.request, &queue);
      call.reader->Finish(&call.answer, &call.status, reinterpret_cast<void*>(slot));
    };
    for (std::size_t slot = 0; slot < calls.size(); ++slot) begin(slot);
    std::size_t open = calls.size();
    Patience patience(plan.poll);
    void* tag = nullptr;
    bool ok = false;
    while (open != 0 && next(queue, patience, &tag, &ok)) {
      const auto slot = reinterpret_cast<std::size_t>(tag);
      const Asked& call = calls[slot];
      if (!ok || !call.status.ok()) Load::fail(call.status.error_message().c_str());
      if (load.ended(slot, call.answer.data().data(), call.answer.data().size())) {
        begin(slot);
      } else {
        --open;
      }
    }
    queue.Shutdown();
    while (queue.Next(&tag, &ok)) {
    }
  });
  return 0;
}

}  // namespace
}  // namespace warpline::echo

// NOLINTNEXTLINE(bugprone-exception-escape): what is thrown ends the program
int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "server" && argc == 4) return warpline::echo::serve(argv[2], warpline::echo::parse_poll(argv[3]));
  if (what == "client" && argc == 7) return warpline::echo::ask(argv[2], warpline::echo::parse_plan(argv + 3));
  std::fprintf(stderr,
               "usage: %s server ADDRESS:PORT POLL_US | client ADDRESS:PORT CONNECTIONS OUTSTANDING SECONDS POLL_US\n",
               argv[0]);
  return 2;
}
