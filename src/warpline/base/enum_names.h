// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace warpline {

/// kEnumNames is what users write and read for the values of an enum, in their order from 0 on. An enum that has such
/// names says them right behind itself, in its own namespace, by a function names_of(E) that returns enum_names().
template <typename E>
inline constexpr auto kEnumNames = [] {
  if constexpr (requires { names_of(E{}); }) {
    return names_of(E{});
  } else {
    return std::array<std::string_view, 0>{};
  }
}();

/// Whether `value` is an enumerator: compilers write it as a number in parentheses otherwise.
template <typename E, E value>
consteval bool is_enumerator() {
  const std::string_view function = __PRETTY_FUNCTION__;
  return function[function.rfind("value = ") + 8] != '(';
}

/// One name for each enumerator: any other number of them does not compile.
template <typename E, std::size_t N>
consteval std::array<std::string_view, N> enum_names(const std::string_view (&names)[N]) {
#ifndef __CUDACC__  // whose front end spells __PRETTY_FUNCTION__ in its own way; the host's compiler sees all of these
  static_assert(is_enumerator<E, static_cast<E>(N - 1)>(), "there are more names than enumerators");
  static_assert(!is_enumerator<E, static_cast<E>(N)>(), "there are more enumerators than names");
#endif
  return std::to_array(names);
}

/// What users write for `value`, of an enum that has such names.
template <typename E>
  requires(kEnumNames<E>.size() != 0)
[[nodiscard]] constexpr std::string_view name(E value) {
  return kEnumNames<E>[static_cast<std::size_t>(value)];
}

}  // namespace warpline
