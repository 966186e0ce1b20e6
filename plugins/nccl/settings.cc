// SPDX-License-Identifier: Apache-2.0
#include "nccl/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

namespace warpline::nccl {
namespace {

using Get = const char* (*)(const char* name);

std::optional<std::string_view> value_of(Get get, const char* name) {
  const char* const value = get(name);
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string_view>(value);
}

Error out_of(const char* name, std::string_view value, const std::string& range) {
  return usage_error(fmt::format("{}={}", name, value), "out of range", fmt::format("use {}", range));
}

template <typename Number>
Result<void> read_count(Get get, const char* name, std::uint64_t least, std::uint64_t most, Number& to) {
  const auto value = value_of(get, name);
  if (!value) return {};
  WARPLINE_TRY(const Bytes number, parse_bytes(*value));
  if (number.value < least || number.value > most) return out_of(name, *value, fmt::format("{} to {}", least, most));
  to = static_cast<Number>(number.value);
  return {};
}

Result<void> read_time(Get get, const char* name, std::int64_t unit, Nanos least, Nanos& to) {
  const auto value = value_of(get, name);
  if (!value) return {};
  WARPLINE_TRY(const Nanos time, parse_nanos(*value, unit));
  constexpr Nanos kMost{3'600'000'000'000};
  if (time < least || time > kMost)
    return out_of(name, *value, fmt::format("{} to {}", to_string(least), to_string(kMost)));
  to = time;
  return {};
}

}  // namespace

Result<Settings> read_settings(Get get, std::uint32_t processors) {
  Settings settings;
  // torchrun says how many processes share this machine. Half of a process's processors are left to NCCL's own threads
  // and the program's.
  std::uint32_t processes = 1;
  WARPLINE_CHECK(read_count(get, "LOCAL_WORLD_SIZE", 1, 1 << 20, processes));
  const std::uint32_t own = processors / std::max(processes, 2U);
  settings.lanes = std::clamp(own / 2, 1U, kMaxLanes);
  // Who polls where processors are few takes one from whom it waits for.
  constexpr std::uint32_t kSome = 4;
  constexpr std::uint32_t kMany = 8;
  if (own >= kSome) settings.poll_for = Nanos{own >= kMany ? 1'000'000 : 100'000};
  WARPLINE_CHECK(read_count(get, "WARPLINE_NCCL_LANES", 1, kMaxLanes, settings.lanes));
  WARPLINE_CHECK(read_time(get, "WARPLINE_NCCL_TIMEOUT", 1'000'000'000, Nanos{10'000'000}, settings.timeout));
  WARPLINE_CHECK(read_time(get, "WARPLINE_NCCL_POLL", 1'000, Nanos{0}, settings.poll_for));
  WARPLINE_CHECK(read_count(get, "WARPLINE_NCCL_PIECE", 4096, kMaxPieceBytes, settings.piece_bytes));
  WARPLINE_CHECK(read_count(get, "WARPLINE_NCCL_DATAGRAM", 1200, 65'507, settings.datagram_bytes));
  WARPLINE_CHECK(read_count(get, "WARPLINE_NCCL_BUFFER", 1 << 16, 1 << 30, settings.buffer_bytes));
  WARPLINE_CHECK(read_count(get, "WARPLINE_NCCL_EARLY", 0, kMostEarlyBytes, settings.early_bytes));
  WARPLINE_CHECK(read_count(get, "WARPLINE_NCCL_MAX_RECVS", 1, kMaxGroup, settings.max_group));
  if (const auto name = value_of(get, "WARPLINE_NCCL_CC")) {
    const auto& names = kEnumNames<message::CcKind>;
    const auto* const found = std::find(names.begin(), names.end(), *name);
    if (found == names.end()) return out_of("WARPLINE_NCCL_CC", *name, "swift, timely, dctcp or none");
    settings.congestion = static_cast<message::CcKind>(found - names.begin());
  }
  settings.interfaces = value_of(get, "NCCL_SOCKET_IFNAME").value_or("");
  settings.family = value_of(get, "NCCL_SOCKET_FAMILY").value_or("");
  return settings;
}

}  // namespace warpline::nccl
