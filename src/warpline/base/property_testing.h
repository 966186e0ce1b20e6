// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

// RapidCheck's templates for common types are compiled once, in property_testing.cc. Otherwise each file of tests
// compiles them again, which takes more time than the tests themselves.

/// Defines a test that runs its body with 100 sets of arguments, drawn at random. Use it instead of RC_GTEST_PROP,
/// which compiles the check of a property anew for every list of argument types.
#define WARPLINE_PROPERTY(Suite, Name, Arguments)                                                    \
  void property_##Suite##_##Name Arguments;                                                          \
  TEST(Suite, Name) {                                                                                \
    ::warpline::check_property([] { ::warpline::call_with_arbitrary(&property_##Suite##_##Name); }); \
  }                                                                                                  \
  void property_##Suite##_##Name Arguments

namespace warpline {

/// Fails the current test if the property fails, and prints the smallest values found for which it does.
void check_property(void (*property)());

/// Calls a function with arguments that RapidCheck draws, first to last.
template <typename... Arguments>
void call_with_arbitrary(void (*property)(Arguments...)) {
  std::tuple<std::decay_t<Arguments>...> values{*rc::gen::arbitrary<std::decay_t<Arguments>>()...};
  std::apply(property, values);
}

}  // namespace warpline

// clang-format off
#define WARPLINE_GENERATORS(EXTERN, ...)                               \
  EXTERN template class rc::Gen<__VA_ARGS__>;                          \
  EXTERN template class rc::Shrinkable<__VA_ARGS__>;                   \
  EXTERN template class rc::Seq<rc::Shrinkable<__VA_ARGS__>>;          \
  EXTERN template rc::Gen<__VA_ARGS__> rc::gen::arbitrary<__VA_ARGS__>();
#define WARPLINE_NUMBER_GENERATORS(EXTERN, Number)                     \
  WARPLINE_GENERATORS(EXTERN, Number)                                  \
  EXTERN template rc::Gen<Number> rc::gen::inRange<Number>(Number, Number);
#define WARPLINE_ALL_GENERATORS(EXTERN)                                \
  WARPLINE_GENERATORS(EXTERN, bool)                                    \
  WARPLINE_NUMBER_GENERATORS(EXTERN, std::uint8_t)                     \
  WARPLINE_NUMBER_GENERATORS(EXTERN, std::uint16_t)                    \
  WARPLINE_NUMBER_GENERATORS(EXTERN, std::uint32_t)                    \
  WARPLINE_NUMBER_GENERATORS(EXTERN, std::uint64_t)                    \
  WARPLINE_NUMBER_GENERATORS(EXTERN, std::int64_t)                     \
  WARPLINE_NUMBER_GENERATORS(EXTERN, int)                              \
  WARPLINE_GENERATORS(EXTERN, std::string)                             \
  WARPLINE_GENERATORS(EXTERN, std::vector<std::uint8_t>)               \
  WARPLINE_GENERATORS(EXTERN, std::vector<std::uint16_t>)              \
  WARPLINE_GENERATORS(EXTERN, std::vector<std::uint32_t>)              \
  WARPLINE_GENERATORS(EXTERN, std::vector<std::uint64_t>)
// clang-format on

WARPLINE_ALL_GENERATORS(extern)
