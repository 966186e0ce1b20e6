// SPDX-License-Identifier: Apache-2.0
#include "warpline/capture/attached/attach_messages.h"

#include <algorithm>
#include <cstring>

namespace warpline::capture {
namespace {

enum class Kind : std::uint32_t { request = 1, welcome, refusal, totals };

/// kVersion names the form of these messages and of what lies in rings, of which the number of verdicts is a part.
constexpr std::uint32_t kVersion = 0x7701'0000 + kVerdicts;

class Writer {
 public:
  explicit Writer(Kind kind) {
    put(kVersion);
    put(kind);
  }
  template <typename T>
  void put(const T& value) {
    put_bytes(&value, sizeof value);
  }
  void put_bytes(const void* bytes, std::size_t size) {
    const auto* const first = static_cast<const std::uint8_t*>(bytes);
    bytes_.insert(bytes_.end(), first, first + size);
  }
  AttachBytes take() { return std::move(bytes_); }

 private:
  AttachBytes bytes_;
};

/// Reads what is there; what is not is zero, and then the message is not whole.
class Reader {
 public:
  Reader(std::span<const std::uint8_t> bytes, Kind kind) : left_(bytes) {
    const auto version = get<std::uint32_t>();
    whole_ &= get<Kind>() == kind && version == kVersion;
  }
  template <typename T>
  T get() {
    T value{};
    const auto bytes = get_bytes(sizeof value);
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::span<const std::uint8_t> get_bytes(std::size_t size) {
    whole_ &= size <= left_.size();
    if (!whole_) return {};
    const auto bytes = left_.first(size);
    left_ = left_.subspan(size);
    return bytes;
  }
  std::span<const std::uint8_t> rest() { return get_bytes(left_.size()); }
  [[nodiscard]] bool whole() const { return whole_; }
  [[nodiscard]] bool at_end() const { return whole_ && left_.empty(); }

 private:
  std::span<const std::uint8_t> left_;
  bool whole_ = true;
};

}  // namespace

AttachBytes to_bytes(const AttachRequest& request) {
  Writer writer(Kind::request);
  writer.put(std::uint32_t{request.traces});
  writer.put(std::uint32_t{request.dropped_only});
  writer.put(request.one_in);
  writer.put(request.snaplen);
  writer.put_bytes(request.filter.data(), request.filter.size());
  return writer.take();
}

std::optional<AttachRequest> read_request(std::span<const std::uint8_t> bytes) {
  Reader reader(bytes, Kind::request);
  AttachRequest request;
  request.traces = reader.get<std::uint32_t>() != 0;
  request.dropped_only = reader.get<std::uint32_t>() != 0;
  request.one_in = reader.get<std::uint32_t>();
  request.snaplen = reader.get<std::uint32_t>();
  const auto filter = reader.rest();
  request.filter.assign(filter.begin(), filter.end());
  const bool sound = reader.at_end() && request.one_in != 0 && request.snaplen != 0 &&
                     request.snaplen <= CaptureRings::kLargestSnaplen;
  return sound ? std::optional(request) : std::nullopt;
}

AttachBytes to_bytes(const AttachWelcome& welcome) {
  Writer writer(Kind::welcome);
  writer.put(welcome.rings);
  writer.put(welcome.shape.slots);
  writer.put(welcome.shape.snaplen);
  for (const CaptureInterface& interface : welcome.interfaces) {
    writer.put(interface.port);
    writer.put(static_cast<std::uint16_t>(interface.name.size()));
    writer.put_bytes(interface.name.data(), interface.name.size());
  }
  return writer.take();
}

std::optional<AttachWelcome> read_welcome(std::span<const std::uint8_t> bytes) {
  Reader reader(bytes, Kind::welcome);
  AttachWelcome welcome;
  welcome.rings = reader.get<std::uint32_t>();
  welcome.shape.slots = reader.get<std::uint32_t>();
  welcome.shape.snaplen = reader.get<std::uint32_t>();
  while (reader.whole() && !reader.at_end()) {
    CaptureInterface& interface = welcome.interfaces.emplace_back();
    interface.port = reader.get<std::uint16_t>();
    const auto name = reader.get_bytes(reader.get<std::uint16_t>());
    interface.name.assign(name.begin(), name.end());
  }
  return reader.at_end() ? std::optional(welcome) : std::nullopt;
}

AttachBytes refusal(std::string_view why) {
  Writer writer(Kind::refusal);
  writer.put_bytes(why.data(), why.size());
  return writer.take();
}

std::optional<std::string> read_refusal(std::span<const std::uint8_t> bytes) {
  Reader reader(bytes, Kind::refusal);
  const auto why = reader.rest();
  return reader.at_end() ? std::optional(std::string(why.begin(), why.end())) : std::nullopt;
}

AttachBytes to_bytes(const SourceTotals& totals) {
  Writer writer(Kind::totals);
  writer.put(totals.filtered);
  writer.put(totals.left_out);
  return writer.take();
}

std::optional<SourceTotals> read_totals(std::span<const std::uint8_t> bytes) {
  Reader reader(bytes, Kind::totals);
  SourceTotals totals;
  totals.filtered = reader.get<std::uint64_t>();
  totals.left_out = reader.get<decltype(totals.left_out)>();
  return reader.at_end() ? std::optional(totals) : std::nullopt;
}

}  // namespace warpline::capture
