// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Messages through `warpline message daemon`, for C++; C programs include warpline/client/client.h. Library
/// warpline::client, which needs the C library alone.
///
/// @code
/// #include <cstdio>
///
/// #include "warpline/client.h"
///
/// int main() {
///   warpline::client::DaemonClient client;
///   const int code = client.attach("/run/warpline/message.sock");
///   if (code != WARPLINE_CLIENT_OK) return std::fprintf(stderr, "%s\n", warpline_client_error(code)), 3;
///   const auto session = client.connect("127.0.0.1:24240");
///   return session.code == WARPLINE_CLIENT_OK ? 0 : 3;
/// }
/// @endcode

#include "warpline/client/client.h"
#include "warpline/client/daemon_client.h"
