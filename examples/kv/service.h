// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <string_view>

#include "protocol.h"
#include "store.h"

namespace kv {

/// Does what `request` asks for and writes into `room` what belongs to the answer `ok`; says how long that is.
inline Outcome perform(Store& store, const Request& request, std::span<std::uint8_t> room, std::size_t& length) {
  switch (request.operation) {
    case Operation::read: {
      const bool found = store.read(
          request.key, [&](std::string_view value) { std::memcpy(room.data(), value.data(), length = value.size()); });
      return found ? Outcome::ok : Outcome::no_such_key;
    }
    case Operation::write:
      store.write(request.key, request.rest);
      return Outcome::ok;
    case Operation::remove:
      return store.remove(request.key) ? Outcome::ok : Outcome::no_such_key;
    case Operation::scan: {
      std::uint32_t count;
      std::memcpy(&count, request.rest.data(), sizeof count);
      // As many as there is room for: who wants more asks again, from behind the last one.
      for (const std::string& key : store.keys(request.key, std::min<std::size_t>(count, room.size() / 6))) {
        std::size_t written = 0;
        const bool there = store.read(
            key, [&](std::string_view value) { written = write_record(room.subspan(length), {key, value}); });
        if (there && written == 0) break;
        length += written;
      }
      return Outcome::ok;
    }
  }
  return Outcome::malformed;
}

/// Answers a request into `room`, which has place for a value at least; returns the answer's length. Any thread.
inline std::size_t serve(Store& store, std::span<const std::uint8_t> bytes, std::span<std::uint8_t> room) {
  std::size_t length = 0;
  Outcome outcome = Outcome::malformed;
  try {
    if (const auto request = parse_request(bytes)) outcome = perform(store, *request, room.subspan(1), length);
  } catch (const std::bad_alloc&) {
    outcome = Outcome::no_memory;
    length = 0;
  }
  room[0] = static_cast<std::uint8_t>(outcome);
  return 1 + length;
}

}  // namespace kv
