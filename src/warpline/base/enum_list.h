// SPDX-License-Identifier: Apache-2.0
#pragma once

// These macros make an enumeration and what people read of it out of one list, so that none of its values lacks a name
// or a meaning. The list is a macro of the enumeration's own, with a line per value:
//
//   #define WARPLINE_VERDICTS(X) X(forward, "leaves by the transmit port") X(runt, "shorter than an Ethernet header")
//
//   enum class Verdict : std::uint16_t { WARPLINE_VERDICTS(WARPLINE_ENUM_VALUE) };
//   inline constexpr std::size_t kVerdicts = 0 WARPLINE_VERDICTS(WARPLINE_ENUM_COUNT);
//   constexpr std::string_view kNames[] = {WARPLINE_VERDICTS(WARPLINE_ENUM_NAME)};
//   constexpr std::string_view kMeanings[] = {WARPLINE_VERDICTS(WARPLINE_ENUM_MEANING)};
//
// Both arrays have the order of the values, which count from 0.

#define WARPLINE_ENUM_VALUE(name, meaning) name,
#define WARPLINE_ENUM_COUNT(name, meaning) +1
#define WARPLINE_ENUM_NAME(name, meaning) #name,
#define WARPLINE_ENUM_MEANING(name, meaning) meaning,
