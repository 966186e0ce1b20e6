// SPDX-License-Identifier: Apache-2.0
#include "page/text/markup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace warpline::page {
namespace {

constexpr int kSignificantDigits = 4;
constexpr int kMostDecimals = 6;
constexpr std::string_view kThinSpace = "\u202f";

/// `grouped` separates the thousands of a decimal text of five or more integer digits.
std::string grouped(const std::string& decimal) {
  const std::size_t begin = decimal.starts_with('-') ? 1 : 0;
  const std::size_t end = std::min(decimal.find('.'), decimal.size());
  if (end - begin < 5) return decimal;
  std::string text = decimal.substr(0, begin);
  for (std::size_t i = begin; i < end; ++i) {
    if (i > begin && (end - i) % 3 == 0) text += kThinSpace;
    text += decimal[i];
  }
  return text + decimal.substr(end);
}

}  // namespace

std::string escape(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\n':
      case '\t':
        result += c;
        break;
      default:
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte == 0x7f) {
          result += "\ufffd";
        } else {
          result += c;
        }
    }
  }
  return result;
}

std::string rounded(double value) {
  const double size = std::abs(value);
  if (size == 0) return "0";
  if (size >= 1e15 || size < 1e-4) return fmt::format("{:.{}g}", value, kSignificantDigits);
  const int integer_digits = static_cast<int>(std::floor(std::log10(size))) + 1;
  std::string text = fmt::format("{:.{}f}", value, std::clamp(kSignificantDigits - integer_digits, 0, kMostDecimals));
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.ends_with('.')) text.pop_back();
  }
  return grouped(text);
}

std::string rounded(const Json& number) {
  return number.is_number_float() ? rounded(number.get<double>()) : grouped(number.dump());
}

std::string data(const Json& number) {
  const std::string full = number.dump(), shown = rounded(number);
  return full == shown ? full : fmt::format("<data value=\"{}\">{}</data>", full, shown);
}

std::string words(std::string_view key) {
  std::string text(key);
  std::ranges::replace(text, '_', ' ');
  return text;
}

std::string scalar(const Json& value) {
  if (value.is_number()) return data(value);
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_string()) return escape(value.get_ref<const std::string&>());
  return "<span class=\"none\">none</span>";
}

}  // namespace warpline::page
