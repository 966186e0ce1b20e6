// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/core/peer_table.h"

#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "warpline/base/property_testing.h"
#include "warpline/base/random.h"

namespace warpline::message {
namespace {

WARPLINE_PROPERTY(PeerTable, is_a_map, ()) {
  // One number of rapidcheck's a case: thousands of them take longer than what is tested.
  Random random(*rc::gen::arbitrary<std::uint64_t>());
  const auto between = [&](int low, int high) {
    return low + static_cast<int>(random.below(static_cast<std::uint64_t>(high - low)));
  };
  constexpr std::uint32_t kCapacity = 12;
  PeerTable table(kCapacity, {1, 2});
  std::map<std::tuple<std::uint16_t, std::uint32_t, std::uint64_t>, std::uint32_t> model;
  const auto peer = [](std::uint16_t port) {
    PeerAddress address;
    address.port = port;
    return address;
  };
  for (int step = 0; step < 300; ++step) {
    const auto port = static_cast<std::uint16_t>(between(0, 6));
    const auto remote = static_cast<std::uint32_t>(between(0, 3));
    const auto nonce = static_cast<std::uint64_t>(between(0, 2));
    const auto known = model.find({port, remote, nonce});
    RC_ASSERT(table.find(peer(port), remote, nonce) == (known == model.end() ? kNone : known->second));
    if (known != model.end()) {
      table.erase(peer(port), remote, nonce, known->second + 1000);  // another's: nothing happens
      if (step % 2 == 0) {
        table.erase(peer(port), remote, nonce, known->second);
        model.erase(known);
      }
    } else if (model.size() < kCapacity) {
      table.insert(peer(port), remote, nonce, static_cast<std::uint32_t>(step));
      model[{port, remote, nonce}] = static_cast<std::uint32_t>(step);
    }
  }
}

}  // namespace
}  // namespace warpline::message
