// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// TCP connections received and sent by a DPDK port, without the kernel. Library warpline::dataplane.
///
/// @code
/// #include <cstdio>
///
/// #include "warpline/stream.h"
///
/// using namespace warpline;
///
/// struct CountBytes final : stream_port::StreamApplication {
///   bool turn(stream::StreamReceiver& receiver, Nanos now) override {
///     while (const auto event = receiver.poll()) {
///       if (const auto view = receiver.view(event->connection)) {
///         bytes += view->bytes.size();
///         (void)receiver.release(event->connection, view->bytes.size());
///       }
///       if (event->state != stream::ConnectionState::open) receiver.close(event->connection, now);
///     }
///     return false;
///   }
///   std::uint64_t bytes = 0;
/// };
///
/// int main() {
///   stream_port::ReceiveSettings settings;
///   settings.port.spec = "net_null0,copy=0,no-rx=1";
///   settings.port.addresses = {*parse_interface_address("10.0.0.2/24")};
///   settings.receiver.ports = {5001};
///   if (!draw_secret(settings.receiver.secret)) return 3;
///   const runtime::StopOnSignal on_signal;
///   CountBytes application;
///   auto run = stream_port::StreamRun::open({.receive = settings});
///   if (!run || !(*run)->launch({&application})) return 3;
///   const auto ended = (*run)->run(runtime::StopOnSignal::requested());
///   std::printf("%lu bytes\n", application.bytes);
///   return ended ? 0 : 3;
/// }
/// @endcode

#include "warpline/base/result.h"
#include "warpline/base/secrets/draw_secret.h"
#include "warpline/runtime/stop.h"
#include "warpline/stream_port/run/stream_run.h"
