// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace warpline::message {

/// A key and its value, both any bytes. Views of where they lie.
struct MetadataEntry {
  std::string_view key;    ///< 1 to 255 bytes
  std::string_view value;  ///< up to 65535 bytes
  bool operator==(const MetadataEntry&) const = default;
};

/// Writes keys and values into memory of the caller's, to be told with a message (RequestOptions::metadata,
/// SendOptions::metadata). Each takes three bytes besides its own. A key may come several times.
class MetadataWriter {
 public:
  /// `room` outlives this. A message takes kMaxMetadataBytes at most.
  explicit MetadataWriter(std::span<std::uint8_t> room) : room_(room) {}

  /// False, and nothing is added, if there is no room for it left or it is not as MetadataEntry says.
  [[nodiscard]] bool add(const MetadataEntry& entry);
  /// What was added so far, in the room.
  [[nodiscard]] std::span<const std::uint8_t> bytes() const { return room_.first(length_); }

 private:
  std::span<std::uint8_t> room_;
  std::size_t length_ = 0;
};

/// Reads what a MetadataWriter wrote, or a peer says that it did: whatever the bytes are, nothing beyond them is read.
class MetadataReader {
 public:
  /// Reads MessageEvent::metadata; `bytes` outlives this and the entries.
  explicit MetadataReader(std::span<const std::uint8_t> bytes) : left_(bytes) {}

  /// Returns the next entry, in the order of writing; none at the end or where the bytes are not well formed.
  [[nodiscard]] std::optional<MetadataEntry> next();
  /// False if there are bytes that are no entries: of another form, or cut off.
  [[nodiscard]] bool well_formed() const { return !malformed_; }

 private:
  std::span<const std::uint8_t> left_;
  bool malformed_ = false;
};

/// Returns the first value of the key, if there is one.
[[nodiscard]] std::optional<std::string_view> find_metadata(std::span<const std::uint8_t> bytes, std::string_view key);

}  // namespace warpline::message
