// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "config/options.h"
#include "warpline/base/address.h"
#include "warpline/base/enum_names.h"
#include "warpline/base/result.h"
#include "warpline/base/units.h"

// Makers of Access: one for each kind of value that an option can have. `ref` maps a T& to the field's reference and a
// const T& to its const reference.

namespace warpline::config {

inline constexpr std::int64_t kMicro = 1'000;  ///< ns
inline constexpr std::int64_t kMilli = 1'000'000;
inline constexpr std::int64_t kSecond = 1'000'000'000;

/// Refuses what no option may hold: control characters and bytes that are not UTF-8.
[[nodiscard]] Result<void> check_text(std::string_view text);
[[nodiscard]] Result<std::uint64_t> parse_bounded(std::string_view text, std::uint64_t min, std::uint64_t max);
[[nodiscard]] Result<std::uint64_t> parse_power_of_two(std::string_view text, std::uint64_t min, std::uint64_t max);
[[nodiscard]] Result<Nanos> parse_bounded_nanos(std::string_view text, std::int64_t unit, Nanos min, Nanos max);
[[nodiscard]] Result<bool> parse_bool(std::string_view text);
[[nodiscard]] Result<Rate> parse_bounded_rate(std::string_view text);
/// Parses events per second: a count or a number of packets, "250K" or "14.88Mpps".
[[nodiscard]] Result<double> parse_per_second(std::string_view text);
/// Parses a part of a whole, 0 to below 1: "0.005" or "0.5%".
[[nodiscard]] Result<double> parse_ratio(std::string_view text);
/// Text that parses to exactly `rate`.
[[nodiscard]] std::string exact_text(const Rate& rate);
[[nodiscard]] Result<std::vector<std::uint8_t>> parse_hex(std::string_view text);
[[nodiscard]] std::string to_hex(std::span<const std::uint8_t> bytes);
/// Lower-case names of letters, digits, '_' and '-', none twice.
[[nodiscard]] Result<std::vector<std::string>> parse_names(std::span<const std::string> texts);
/// Bytes, "on" for 60 and "off" for 0.
[[nodiscard]] Result<std::uint64_t> parse_split(std::string_view text);
/// "imix", or the number of bytes.
[[nodiscard]] Result<std::string> parse_frame_size(std::string_view text);
/// The index of `text` in `known`.
[[nodiscard]] Result<std::size_t> parse_choice(std::string_view text, const std::vector<std::string_view>& known);

template <typename S, typename F>
auto field_of(S Config::* section, F S::* field) {
  return [section, field](auto& config) -> auto& { return config.*section.*field; };
}

template <typename F>
auto field_of(F port::PortSettings::* field) {
  return [field](auto& port) -> auto& { return port.*field; };
}

/// From a parser of one text and a printer of the value.
template <typename T, typename Ref, typename Parse, typename Print>
Access<T> scalar(Ref ref, Parse parse, Print print, std::string allowed = {}) {
  return {[ref, parse = std::move(parse)](T& owner, std::span<const std::string> texts) -> Result<void> {
            WARPLINE_TRY(auto value, parse(texts.front()));
            ref(owner) = static_cast<std::remove_reference_t<decltype(ref(owner))>>(std::move(value));
            return {};
          },
          [ref, print = std::move(print)](const T& owner) -> nlohmann::json { return print(ref(owner)); },
          std::move(allowed)};
}

template <typename T, typename Ref>
Access<T> count(Ref ref, std::uint64_t min, std::uint64_t max) {
  return scalar<T>(
      ref, [min, max](std::string_view text) { return parse_bounded(text, min, max); },
      [](auto value) { return value; }, fmt::format("{}..{}", min, max));
}

template <typename T, typename Ref>
Access<T> unbounded(Ref ref) {
  return scalar<T>(ref, [](std::string_view text) { return parse_count(text); }, [](auto value) { return value; });
}

template <typename T, typename Ref>
Access<T> power_of_two(Ref ref, std::uint64_t min, std::uint64_t max) {
  return scalar<T>(
      ref, [min, max](std::string_view text) { return parse_power_of_two(text, min, max); },
      [](auto value) { return value; }, fmt::format("{}..{}, a power of two", min, max));
}

/// A count, or "driver" for an unset one.
template <typename T, typename Ref>
Access<T> optional_count(Ref ref, std::uint64_t min, std::uint64_t max) {
  using Value = std::optional<std::uint16_t>;
  return scalar<T>(
      ref,
      [min, max](std::string_view text) -> Result<Value> {
        if (text == "driver") return Value{};
        WARPLINE_TRY(const std::uint64_t value, parse_bounded(text, min, max));
        return Value{static_cast<std::uint16_t>(value)};
      },
      [](const Value& value) { return value ? nlohmann::json(*value) : nlohmann::json("driver"); },
      fmt::format("{}..{} or driver", min, max));
}

/// Several paths of files, any of them.
template <typename T, typename Ref>
Access<T> paths(Ref ref) {
  return {[ref](T& owner, std::span<const std::string> texts) -> Result<void> {
            for (const std::string& text : texts) {
              if (text.empty()) return usage_error("cannot use ''", "it names no file", "write the path of a file");
            }
            ref(owner).assign(texts.begin(), texts.end());
            return {};
          },
          [ref](const T& owner) -> nlohmann::json { return ref(owner); }, ""};
}

/// Several counts, at least one.
template <typename T, typename Ref>
Access<T> counts(Ref ref, std::uint64_t min, std::uint64_t max) {
  return {[=](T& owner, std::span<const std::string> texts) -> Result<void> {
            std::remove_reference_t<decltype(ref(owner))> values;
            for (const std::string& text : texts) {
              WARPLINE_TRY(const std::uint64_t value, parse_bounded(text, min, max));
              values.push_back(static_cast<typename decltype(values)::value_type>(value));
            }
            if (values.empty()) return usage_error("cannot use ''", "it names none", "leave it out for the default");
            ref(owner) = std::move(values);
            return {};
          },
          [ref](const T& owner) -> nlohmann::json { return ref(owner); }, fmt::format("{}..{}", min, max)};
}

/// The same, or "all" for all that there are, which leaves the list empty.
template <typename T, typename Ref>
Access<T> counts_or_all(Ref ref, std::uint64_t min, std::uint64_t max) {
  const Access<T> named = counts<T>(ref, min, max);
  return {[=](T& owner, std::span<const std::string> texts) -> Result<void> {
            if (std::ranges::find(texts, "all") == texts.end()) return named.set(owner, texts);
            if (texts.size() > 1)
              return usage_error("cannot combine 'all' with others", "it names them, too", "use one");
            ref(owner).clear();
            return {};
          },
          [=](const T& owner) -> nlohmann::json {
            return ref(owner).empty() ? nlohmann::json::array({"all"}) : named.get(owner);
          },
          named.allowed + " or all"};
}

template <typename T, typename Ref>
Access<T> boolean(Ref ref) {
  return scalar<T>(ref, parse_bool, [](bool value) { return value; });
}

/// A boolean field that the option turns off.
template <typename T, typename Ref>
Access<T> inverse(Ref ref) {
  return scalar<T>(
      ref,
      [](std::string_view text) -> Result<bool> {
        WARPLINE_TRY(const bool value, parse_bool(text));
        return !value;
      },
      [](bool value) { return !value; });
}

/// `unit` is the nanoseconds of a bare number.
template <typename T, typename Ref>
Access<T> nanos(Ref ref, std::int64_t unit, Nanos min, Nanos max) {
  return scalar<T>(
      ref, [=](std::string_view text) { return parse_bounded_nanos(text, unit, min, max); },
      [](Nanos value) { return to_string(value); }, fmt::format("{}..{}", to_string(min), to_string(max)));
}

/// The same, or "automatic" for an unset one.
template <typename T, typename Ref>
Access<T> optional_nanos(Ref ref, std::int64_t unit, Nanos min, Nanos max) {
  using Value = std::optional<Nanos>;
  return scalar<T>(
      ref,
      [=](std::string_view text) -> Result<Value> {
        if (text == "automatic") return Value{};
        WARPLINE_TRY(const Nanos value, parse_bounded_nanos(text, unit, min, max));
        return Value{value};
      },
      [](const Value& value) { return value ? to_string(*value) : "automatic"; },
      fmt::format("{}..{} or automatic", to_string(min), to_string(max)));
}

/// An IP address, or "none" for an unset one.
template <typename T, typename Ref>
Access<T> optional_address(Ref ref) {
  using Value = std::optional<IpAddress>;
  return scalar<T>(
      ref,
      [](std::string_view text) -> Result<Value> {
        if (text == "none") return Value{};
        WARPLINE_TRY(const IpAddress address, parse_ip(text));
        return Value{address};
      },
      [](const Value& value) { return value ? to_string(*value) : std::string("none"); });
}

/// One of the values of an enum that has names.
template <typename T, typename Ref>
Access<T> choice(Ref ref) {
  using E = std::remove_cvref_t<decltype(ref(std::declval<T&>()))>;
  const std::vector<std::string_view> known(kEnumNames<E>.begin(), kEnumNames<E>.end());
  return scalar<T>(
      ref, [known](std::string_view text) { return parse_choice(text, known); },
      [](E value) { return std::string(name(value)); }, fmt::format("{}", fmt::join(known, "|")));
}

/// The same, or "auto" for an unset one.
template <typename T, typename Ref>
Access<T> optional_choice(Ref ref) {
  using Value = std::remove_cvref_t<decltype(ref(std::declval<T&>()))>;
  using E = typename Value::value_type;
  std::vector<std::string_view> known = {"auto"};
  known.insert(known.end(), kEnumNames<E>.begin(), kEnumNames<E>.end());
  return scalar<T>(
      ref,
      [known](std::string_view text) -> Result<Value> {
        WARPLINE_TRY(const std::size_t index, parse_choice(text, known));
        return index == 0 ? Value{} : Value{static_cast<E>(index - 1)};
      },
      [](const Value& value) { return value ? std::string(name(*value)) : std::string("auto"); },
      fmt::format("{}", fmt::join(known, "|")));
}

/// Bytes, or "auto" for an unset value.
template <typename T, typename Ref>
Access<T> optional_bytes(Ref ref) {
  using Value = std::optional<Bytes>;
  return scalar<T>(
      ref,
      [](std::string_view text) -> Result<Value> {
        if (text == "auto") return Value{};
        WARPLINE_TRY(const Bytes bytes, parse_bytes(text));
        return Value{bytes};
      },
      [](const Value& value) { return value ? nlohmann::json(value->value) : nlohmann::json("auto"); },
      "bytes or auto");
}

template <typename T, typename Ref>
Access<T> text(Ref ref) {
  return scalar<T>(
      ref, [](std::string_view value) -> Result<std::string> { return std::string(value); },
      [](const std::string& value) { return value; });
}

template <typename T, typename Ref>
Access<T> names(Ref ref, std::string allowed) {
  return {[ref](T& owner, std::span<const std::string> texts) -> Result<void> {
            WARPLINE_TRY(ref(owner), parse_names(texts));
            return {};
          },
          [ref](const T& owner) -> nlohmann::json { return ref(owner); }, std::move(allowed)};
}

}  // namespace warpline::config
