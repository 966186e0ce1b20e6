// SPDX-License-Identifier: Apache-2.0
// The part of bench/stream/run between two ports of the software NIC: one core sends, one receives.
//
//     stream_wire CONNECTIONS MTU BYTES plain|verified
//
// BYTES are of all connections together. Prints the seconds from the first byte to the last at the receiver, and how
// many segments and acknowledgements that took. "verified": the receiver compares every byte.
#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "transfers/transfer.h"
#include "warpline/runtime/eal.h"
#include "warpline/runtime/lcore_plan.h"

namespace {

using namespace warpline;

Result<transfers::TransferFigures> measure(const transfers::Transfer& transfer) {
  constexpr EngineKind kEngines[] = {EngineKind::inline_};
  WARPLINE_TRY(const Bytes memory, transfers::transfer_memory(1, kEngines, EngineKind::inline_, 0));
  WARPLINE_TRY(const runtime::Eal eal, runtime::Eal::start({.lcores = 2, .share_cores = true, .hugepages = false},
                                                           transfers::transfer_workers(1), {}, memory));
  const std::atomic<bool> stop{false};
  return transfers::run_transfer(eal.plan(), transfer, stop);
}

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): what is thrown ends the program
int main(int count, char** arguments) {
  transfers::Transfer transfer;
  const std::string_view how = count == 5 ? arguments[4] : "";
  if (how == "plain" || how == "verified") {
    transfer.connections = static_cast<std::uint32_t>(std::atoi(arguments[1]));
    transfer.mtu = static_cast<std::uint16_t>(std::atoi(arguments[2]));
    transfer.bytes = transfer.connections != 0 ? std::strtoull(arguments[3], nullptr, 10) / transfer.connections : 0;
    transfer.verify = how == "verified";
    if (transfer.connections != 1) transfer.ring_bytes = 256 << 10;  // which the wire holds of 64 of them
  }
  if (count != 5 || transfer.connections == 0 || transfer.bytes == 0) {
    fmt::print(stderr, "usage: stream_wire CONNECTIONS MTU BYTES plain|verified\n");
    return 2;
  }
  const auto figures = measure(transfer);
  if (!figures) {
    fmt::print(stderr, "{}\n", figures.error().message());
    return static_cast<int>(figures.error().kind);
  }
  fmt::print("{}\t{}\t{}\t{}\n", figures->receiving_s, figures->segments, figures->acknowledgements,
             figures->retransmitted);
  return 0;
}
