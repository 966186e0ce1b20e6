// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Requests and answers between programs, over UDP sockets: a MessageHost is an endpoint with its loop.
/// Library warpline::message.
///
/// @code
/// #include <cstdio>
///
/// #include "warpline/rpc.h"
///
/// int main() {
///   const auto server = warpline::parse_socket_address("127.0.0.1:24240");
///   auto host = warpline::rpc::MessageHost::open({});
///   if (!server || !host) return 3;
///   const auto session = host->connect(*server);
///   const auto answer = session ? host->ask(*session, "Ada") : session.error();
///   std::printf("%s\n", answer ? answer->c_str() : answer.error().message().c_str());
/// }
/// @endcode

#include "warpline/base/result.h"
#include "warpline/rpc/call_observer.h"
#include "warpline/rpc/completion_queue.h"
#include "warpline/rpc/handler_threads.h"
#include "warpline/rpc/message_host.h"
#include "warpline/rpc/multi_endpoint.h"
#include "warpline/rpc/pending_call.h"
#include "warpline/rpc/pool/server_pool.h"
#include "warpline/rpc/streams/call_stream.h"
