// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/metadata.h"

#include <algorithm>
#include <limits>

#include "warpline/packet/byte_order.h"

namespace warpline::message {
namespace {

constexpr std::size_t kLengths = 3;  ///< bytes before each key: of its length, and two of its value's

}  // namespace

bool MetadataWriter::add(const MetadataEntry& entry) {
  const bool sound = !entry.key.empty() && entry.key.size() <= std::numeric_limits<std::uint8_t>::max() &&
                     entry.value.size() <= std::numeric_limits<std::uint16_t>::max();
  if (!sound || room_.size() - length_ < kLengths + entry.key.size() + entry.value.size()) return false;
  const std::span<std::uint8_t> to = room_.subspan(length_);
  to[0] = static_cast<std::uint8_t>(entry.key.size());
  packet::store_be16(to.data() + 1, static_cast<std::uint16_t>(entry.value.size()));
  const auto value = std::copy(entry.key.begin(), entry.key.end(), to.begin() + kLengths);
  std::copy(entry.value.begin(), entry.value.end(), value);
  length_ += kLengths + entry.key.size() + entry.value.size();
  return true;
}

std::optional<MetadataEntry> MetadataReader::next() {
  if (left_.empty() || malformed_) return std::nullopt;
  const std::size_t key = left_[0];
  const std::size_t value = left_.size() < kLengths ? 0 : packet::load_be16(left_.data() + 1);
  malformed_ = key == 0 || left_.size() < kLengths + key + value;
  if (malformed_) return std::nullopt;
  const std::string_view text(reinterpret_cast<const char*>(left_.data()) + kLengths, key + value);
  left_ = left_.subspan(kLengths + key + value);
  return MetadataEntry{text.substr(0, key), text.substr(key)};
}

std::optional<std::string_view> find_metadata(std::span<const std::uint8_t> bytes, std::string_view key) {
  MetadataReader reader(bytes);
  while (const std::optional<MetadataEntry> entry = reader.next()) {
    if (entry->key == key) return entry->value;
  }
  return std::nullopt;
}

}  // namespace warpline::message
