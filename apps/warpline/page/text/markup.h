// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "page/text/json.h"

// Texts and numbers as HTML. Whatever comes from a file goes through here, so that no text of it can become markup.

namespace warpline::page {

/// `escape` returns the text for use between tags and in quoted attributes. Control characters, which HTML cannot hold,
/// become U+FFFD; the input is UTF-8.
[[nodiscard]] std::string escape(std::string_view text);

/// `rounded` returns a number with four significant digits or all of its integer part, whichever is more. Thin spaces
/// (U+202F) separate thousands from five digits on.
[[nodiscard]] std::string rounded(double value);
/// `rounded` of a JSON number: integers are written in full.
[[nodiscard]] std::string rounded(const Json& number);

/// `data` returns a number of a file: as text if that is all of it, otherwise as an element, rounded for the reader and
/// in full in its attribute `value`.
[[nodiscard]] std::string data(const Json& number);

/// `words` returns a key of JSON as people write it: "cycles_per_packet" is "cycles per packet".
[[nodiscard]] std::string words(std::string_view key);

/// `scalar` returns a string, number, boolean or null as HTML.
[[nodiscard]] std::string scalar(const Json& value);

}  // namespace warpline::page
