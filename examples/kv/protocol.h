// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// What a request and its answer are made of: an operation, a key's length and the key, then what belongs to the
/// operation; an Outcome, then what was asked for. Numbers are little-endian, as on the machines of both ends.
namespace kv {

enum class Operation : std::uint8_t {
  read,    ///< answered with the value
  write,   ///< followed by the value
  remove,  ///<
  scan,    ///< followed by how many (4 bytes); answered with Records, from the key on in order of the keys
};

enum class Outcome : std::uint8_t {
  ok,
  no_such_key,
  malformed,  ///< the request is none
  no_memory,  ///< for the key or value
};

inline constexpr std::size_t kLongestKey = 255;
inline constexpr std::size_t kLongestValue = 60'000;

/// A request, its parts where they were received.
struct Request {
  Operation operation = Operation::read;
  std::string_view key;
  std::string_view rest;  ///< the value, or a scan's count
};

/// Appends a request to `to`. `key` has 1 to kLongestKey bytes.
inline void append_request(std::string& to, Operation operation, std::string_view key, std::string_view rest = {}) {
  to += static_cast<char>(operation);
  to += static_cast<char>(key.size());
  to += key;
  to += rest;
}

/// Appends a scan from `key` on of `count` records.
inline void append_scan(std::string& to, std::string_view key, std::uint32_t count) {
  append_request(to, Operation::scan, key, {reinterpret_cast<const char*>(&count), sizeof count});
}

/// Nothing: the bytes are no request.
inline std::optional<Request> parse_request(std::span<const std::uint8_t> bytes) {
  if (bytes.size() < 3) return std::nullopt;
  const std::size_t length = bytes[1];
  if (bytes[0] > static_cast<std::uint8_t>(Operation::scan) || length == 0 || bytes.size() < 2 + length)
    return std::nullopt;
  const auto* text = reinterpret_cast<const char*>(bytes.data()) + 2;
  const Request request{static_cast<Operation>(bytes[0]), {text, length}, {text + length, bytes.size() - 2 - length}};
  switch (request.operation) {
    case Operation::write:
      return request.rest.size() <= kLongestValue ? std::optional(request) : std::nullopt;
    case Operation::scan:
      return request.rest.size() == sizeof(std::uint32_t) ? std::optional(request) : std::nullopt;
    case Operation::read:
    case Operation::remove:
      break;
  }
  return request.rest.empty() ? std::optional(request) : std::nullopt;
}

/// One of a scan's answer.
struct Record {
  std::string_view key;
  std::string_view value;
};

/// Writes a record to the front of `room`: a length of 1 byte and one of 4, key, value. How long; 0: there is no room.
inline std::size_t write_record(std::span<std::uint8_t> room, const Record& record) {
  const std::size_t length = 5 + record.key.size() + record.value.size();
  if (length > room.size()) return 0;
  const auto value_length = static_cast<std::uint32_t>(record.value.size());
  room[0] = static_cast<std::uint8_t>(record.key.size());
  std::memcpy(room.data() + 1, &value_length, sizeof value_length);
  std::memcpy(room.data() + 5, record.key.data(), record.key.size());
  std::memcpy(room.data() + 5 + record.key.size(), record.value.data(), record.value.size());
  return length;
}

/// Takes a record from the front of `bytes`. Nothing: there is none, or no whole one.
inline std::optional<Record> take_record(std::string_view& bytes) {
  if (bytes.size() < 5) return std::nullopt;
  const std::size_t key = static_cast<std::uint8_t>(bytes[0]);
  std::uint32_t value;
  std::memcpy(&value, bytes.data() + 1, sizeof value);
  if (bytes.size() - 5 < key || bytes.size() - 5 - key < value) return std::nullopt;
  const Record record{bytes.substr(5, key), bytes.substr(5 + key, value)};
  bytes.remove_prefix(5 + key + value);
  return record;
}

}  // namespace kv
