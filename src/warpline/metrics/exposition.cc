// SPDX-License-Identifier: Apache-2.0
#include "warpline/metrics/exposition.h"

#include <fmt/format.h>

#include <iterator>

namespace warpline::metrics {
namespace {

constexpr std::string_view kKindNames[] = {"counter", "gauge", "info", "summary"};

/// What stands behind a family's name in its samples.
constexpr std::string_view suffix(FamilyKind kind) {
  if (kind == FamilyKind::counter) return "_total";
  return kind == FamilyKind::info ? "_info" : "";
}

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
  return accept.find("application/openmetrics-text") != std::string_view::npos ? Exposition::openmetrics
                                                                               : Exposition::text;
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
