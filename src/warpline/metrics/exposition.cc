// SPDX-License-Identifier: Apache-2.0
#include "warpline/metrics/exposition.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace warpline::metrics {
namespace {

constexpr std::string_view kKindNames[] = {"counter", "gauge", "info", "summary"};

/// What stands behind a family's name in its samples.
constexpr std::string_view suffix(FamilyKind kind) {
  if (kind == FamilyKind::counter) return "_total";
  return kind == FamilyKind::info ? "_info" : "";
}

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool equal_without_case(std::string_view left, std::string_view right) {
  return std::ranges::equal(left, right, {}, lower, lower);
}

/// Returns the text up to the next separator, without blanks around it, and leaves the rest.
std::string_view next_part(std::string_view& rest, char separator) {
  const std::size_t end = std::min(rest.find(separator), rest.size());
  std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  constexpr std::string_view kBlanks = " \t";
  part.remove_prefix(std::min(part.find_first_not_of(kBlanks), part.size()));
  part = part.substr(0, part.find_last_not_of(kBlanks) + 1);
  return part;
}

/// Reads a weight of 0 to 1 with up to three decimals (RFC 9110, 12.4.2), in thousandths; any other text is 0.
int thousandths(std::string_view text) {
  if (text.empty() || (text[0] != '0' && text[0] != '1') || text.size() > 5 || (text.size() > 1 && text[1] != '.')) {
    return 0;
  }
  int value = text[0] - '0';
  for (std::size_t i = 2; i < 5; ++i) {
    const char digit = i < text.size() ? text[i] : '0';
    if (digit < '0' || digit > '9') return 0;
    value = value * 10 + (digit - '0');
  }
  return std::min(value, 1000);
}

/// The weight that an Accept header gives one representation: that of the most specific media range that matches it
/// (RFC 9110, 12.5.1).
struct Preference {
  static constexpr int kAny = 1;  ///< of */*; a type with any subtype has 2, a named one 3, one more for its version

  std::string_view type;
  std::string_view subtype;
  std::string_view version;
  int quality = 0;  ///< in thousandths; 0: not acceptable
  int specificity = 0;

  void read(std::string_view range) {
    const std::string_view media = next_part(range, ';');
    int rank = 3;
    if (media == "*/*") {
      rank = kAny;
    } else {
      const std::size_t slash = std::min(media.find('/'), media.size());
      if (!equal_without_case(media.substr(0, slash), type)) return;
      const std::string_view sub = media.substr(std::min(slash + 1, media.size()));
      if (sub != "*" && !equal_without_case(sub, subtype)) return;
      if (sub == "*") rank = 2;
    }
    int weight = 1000;
    while (!range.empty()) {
      std::string_view value = next_part(range, ';');
      const std::string_view name = next_part(value, '=');
      if (equal_without_case(name, "q")) {
        weight = thousandths(value);
      } else if (equal_without_case(name, "version")) {
        if (value != version) return;
        rank = 4;
      }
    }
    if (rank < specificity || (rank == specificity && weight < quality)) return;
    specificity = rank;
    quality = weight;
  }
};

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\' || c == '"') result += '\\';
    if (c == '\n') {
      result += "\\n";
    } else {
      result += c;
    }
  }
  return result;
}

class Writer {
 public:
  explicit Writer(Exposition exposition) : openmetrics_(exposition == Exposition::openmetrics) {}

  void write(const Family& family) {
    if (family.samples.empty() && family.measured.empty()) return;
    describe(family);
    for (const Family::Sample& sample : family.samples) {
      line(fmt::format("{}{}", family.name, suffix(family.kind)), sample.labels, sample.value);
    }
    for (const auto& [labels, times] : family.measured) {
      for (const auto& [quantile, nanoseconds] : {std::pair{"0.5", times.p50},
                                                  {"0.9", times.p90},
                                                  {"0.99", times.p99},
                                                  {"0.999", times.p999},
                                                  {"1", times.max}}) {
        Labels with_quantile = labels;
        with_quantile.emplace_back("quantile", quantile);
        line(family.name, with_quantile, static_cast<double>(nanoseconds) / 1e9);
      }
      line(family.name + "_count", labels, times.count);
    }
  }

  std::string end() && {
    if (openmetrics_) text_ += "# EOF\n";
    return std::move(text_);
  }

 private:
  /// OpenMetrics names the family, the older format its samples, and that knows no units and no infos.
  void describe(const Family& family) {
    const std::string name = openmetrics_ ? family.name : fmt::format("{}{}", family.name, suffix(family.kind));
    const std::string_view kind =
        !openmetrics_ && family.kind == FamilyKind::info ? "gauge" : kKindNames[static_cast<std::size_t>(family.kind)];
    add("# TYPE {} {}\n", name, kind);
    if (openmetrics_ && !family.unit.empty()) add("# UNIT {} {}\n", name, family.unit);
    add("# HELP {} {}.\n", name, escaped(family.help));
  }

  void line(std::string_view name, const Labels& labels, Value value) {
    add("{}", name);
    for (const auto& [label, text] : labels)
      add("{}{}=\"{}\"", &label == &labels.front().first ? '{' : ',', label, escaped(text));
    if (!labels.empty()) text_ += '}';
    std::visit([this](auto number) { add(" {}\n", number); }, value);
  }

  template <typename... Parts>
  void add(fmt::format_string<const Parts&...> pattern, const Parts&... parts) {
    fmt::format_to(std::back_inserter(text_), pattern, parts...);
  }

  bool openmetrics_;
  std::string text_;
};

}  // namespace

Exposition wanted_by(std::string_view accept) {
  Preference openmetrics{"application", "openmetrics-text", "1.0.0"};
  Preference text{"text", "plain", "0.0.4"};
  for (std::string_view rest = accept; !rest.empty();) {
    const std::string_view range = next_part(rest, ',');
    openmetrics.read(range);
    text.read(range);
  }
  // A scraper that takes any type may not know the newer format.
  const bool prefers = openmetrics.quality > text.quality ||
                       (openmetrics.quality == text.quality && openmetrics.specificity > Preference::kAny);
  return prefers && openmetrics.quality > 0 ? Exposition::openmetrics : Exposition::text;
}

std::string_view content_type(Exposition exposition) {
  return exposition == Exposition::openmetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                               : "text/plain; version=0.0.4; charset=utf-8";
}

std::string write(const Snapshot& snapshot, Exposition exposition) {
  Writer writer(exposition);
  for (const Family& family : snapshot.families()) writer.write(family);
  return std::move(writer).end();
}

}  // namespace warpline::metrics
