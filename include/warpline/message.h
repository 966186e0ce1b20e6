// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Reliable messages and requests over UDP without a thread or a loop of its own: the endpoint takes datagrams and
/// times, and returns datagrams and events. Most programs want rpc.h, which has the loop. Library warpline::message.
///
/// @code
/// #include <cstdio>
///
/// #include "warpline/message.h"
///
/// int main() {
///   const warpline::Nanos now{1'000'000'000};
///   auto endpoint = warpline::message::Endpoint::create({}, now);
///   if (!endpoint) return std::fprintf(stderr, "%s\n", endpoint.error().message().c_str()), 3;
///   std::printf("%u sessions are free\n", endpoint->facts().free_sessions);
/// }
/// @endcode

#include "warpline/base/result.h"
#include "warpline/message/endpoint.h"
#include "warpline/message/metadata.h"
#include "warpline/protection/key_file.h"
#include "warpline/protection/packet_protection.h"
#include "warpline/transport/udp_socket.h"
