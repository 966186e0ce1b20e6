// SPDX-License-Identifier: Apache-2.0
#include "page/draw/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "page/draw/scale.h"
#include "page/text/markup.h"

namespace warpline::page {
namespace {

// Sizes in CSS pixels. Across, everything is in per cent of the figure, so that it fits any width.
constexpr int kLine = 16;    ///< of a label's text
constexpr int kTrack = 18;   ///< where a row's marks are
constexpr int kGap = 6;      ///< between rows
constexpr int kAxis = 22;    ///< below all rows
constexpr int kWrap = 3400;  ///< width of a label's line, see width_of(): what the narrowest figure has room for
constexpr double kLineRoom =
    4.1;                      ///< the narrowest figure's room for a line's label, as width_of() a per mille of the axis
constexpr double kInset = 2;  ///< per cent at both ends, for half a mark
constexpr std::size_t kSymbols = 8;
constexpr double kOffScale = 1.6;  ///< ceilings this many times above all values would squeeze them

constexpr std::string_view kPeers[] = {"testpmd", "kernel", "raw",     "baseline", "published", "iperf",
                                       "null",    "quiet",  "without", "l2fwd",    "fast-free", "off"};

/// `width_of` estimates how wide a character is, in per cent of an average one: fonts differ, so wide rather than
/// narrow.
int width_of(char c) {
  constexpr std::string_view kNarrow = " .,:;|'!ijlt()[]", kWide = "mwMW@%";
  if ((static_cast<unsigned char>(c) & 0xc0) == 0x80) return 0;  // goes on with the character before
  if (kNarrow.find(c) != std::string_view::npos) return 65;
  if (kWide.find(c) != std::string_view::npos) return 165;
  return c >= 'A' && c <= 'Z' ? 125 : static_cast<unsigned char>(c) >= 0x80 ? 150 : 100;
}

int width_of(std::string_view text) {
  int width = 0;
  for (const char c : text) width += width_of(c);
  return width;
}

/// `lines_of` breaks a label after spaces and, where there is none, anywhere between two characters.
std::vector<std::string> lines_of(const std::string& label) {
  std::vector<std::string> lines(1);
  std::size_t last_space = std::string::npos;
  int width = 0;
  for (const char c : label) {
    if (width_of(c) != 0 && width + width_of(c) > kWrap) {
      std::string rest;
      if (last_space != std::string::npos) {
        rest = lines.back().substr(last_space + 1);
        lines.back().resize(last_space);
      }
      width = width_of(rest);
      lines.push_back(std::move(rest));
      last_space = std::string::npos;
    }
    if (c == ' ') last_space = lines.back().size();
    lines.back() += c;
    width += width_of(c);
  }
  return lines;
}

/// `tick_text` is short enough for five of them below the narrowest plot.
std::string tick_text(double value) {
  for (const auto& [unit, name] : {std::pair{1e9, " G"}, std::pair{1e6, " M"}, std::pair{1e4, " k"}}) {
    const double scaled = std::abs(value) / unit;
    if (scaled >= 1 && scaled < 1e5) return fmt::format("{:g}{}", value / (unit == 1e4 ? 1e3 : unit), name);
  }
  return value != 0 && (std::abs(value) < 1e-3 || std::abs(value) >= 1e4) ? fmt::format("{:.2g}", value)
                                                                          : fmt::format("{:g}", value);
}

std::string percent(double per_mille) { return fmt::format("{:.4g}%", kInset + per_mille / 1000 * (100 - 2 * kInset)); }

/// The full number, where the text does not say it.
std::string value_attribute(const Json& number) {
  const std::string full = number.dump();
  return full == rounded(number) ? "" : " data-value=\"" + full + "\"";
}

class Drawing {
 public:
  Drawing(const Chart& chart, const std::string& id) : chart_(chart), id_(id), scale_(values()) {}

  std::string html() {
    choose_lines();
    int y = kGap;
    for (const Line* line : drawn_) {
      line_labels_ += line_label(*line, y + kLine - 4);
      y += kLine;
    }
    const int top = y;
    for (const Row& row : chart_.rows) y = draw_row(row, y);
    const int bottom = y;
    std::string result = "<figure class=\"plot\">\n<figcaption>" + caption() + "</figcaption>\n" + legend();
    result += fmt::format(
        "<svg role=\"img\" aria-labelledby=\"{0}t {0}d\" width=\"100%\" height=\"{1}\">\n"
        "<title id=\"{0}t\">{2}</title>\n<desc id=\"{0}d\">{3}</desc>\n",
        id_, bottom + kAxis, escape(chart_.title), description());
    return result + axis(top, bottom) + line_labels_ + labels() + tracks(bottom) + marks_ + "\n</svg>\n" + beyond() +
           "</figure>\n";
  }

 private:
  [[nodiscard]] std::vector<double> values() const {
    std::vector<double> found;
    const auto add = [&](double value) {
      if (std::isfinite(value)) found.push_back(value);
    };
    for (const Row& row : chart_.rows) {
      for (const Mark& mark : row.marks) {
        if (mark.number != nullptr) add(mark.value);
        if (mark.low) add(*mark.low);
        if (mark.high) add(*mark.high);
        if (row.marks.size() == 1) std::ranges::for_each(mark.samples, add);
      }
    }
    const double most = found.empty() ? 0 : std::ranges::max(found);
    for (const Line& line : chart_.lines) {
      const double value = line.value->get<double>();
      if (line.is_limit || (value > 0 && value <= most * kOffScale)) add(value);
    }
    if (found.empty()) found.push_back(0);
    return found;
  }

  void choose_lines() {
    for (const Line& line : chart_.lines) {
      (scale_.holds(line.value->get<double>()) ? drawn_ : beyond_).push_back(&line);
    }
  }

  [[nodiscard]] std::string caption() const {
    const std::string text = escape(chart_.title);
    std::string unit = escape(chart_.unit);
    const char* note = scale_.kind() == Scale::Kind::logarithmic ? "logarithmic axis"
                       : scale_.kind() == Scale::Kind::cut       ? "axis not from zero"
                                                                 : "";
    if (*note != 0) unit += (unit.empty() ? "" : ", ") + std::string(note);
    return unit.empty() ? text : text + " <span class=\"unit\">" + unit + "</span>";
  }

  [[nodiscard]] std::string legend() const {
    if (chart_.series.empty()) return "";
    std::string items;
    for (std::size_t i = 0; i < chart_.series.size(); ++i) {
      items += "<li>" + symbol(i) + escape(chart_.series[i]) + "</li>";
    }
    return "<ul class=\"legend\">" + items + "</ul>\n";
  }

  [[nodiscard]] std::string description() const {
    const Row *least = nullptr, *most = nullptr;
    double low = 0, high = 0;
    for (const Row& row : chart_.rows) {
      for (const Mark& mark : row.marks) {
        if (mark.number == nullptr) continue;
        if (least == nullptr || mark.value < low) least = &row, low = mark.value;
        if (most == nullptr || mark.value > high) most = &row, high = mark.value;
      }
    }
    std::string text = "Dots along one axis";
    if (!chart_.unit.empty()) text += ", in " + chart_.unit;
    if (least != nullptr && least != most) {
      text += ". Lowest: " + least->label + ". Highest: " + most->label;
    }
    for (const Line* line : drawn_) text += ". A line shows " + line->label;
    return escape(text + ". The numbers are in the table.");
  }

  [[nodiscard]] std::string axis(int top, int bottom) const {
    std::string grid, texts;
    for (const double tick : scale_.ticks()) {
      const std::string x = percent(scale_.place(tick));
      grid += fmt::format("<line class=\"{}\" x1=\"{}\" x2=\"{}\" y1=\"{}\" y2=\"{}\"/>", tick == 0 ? "zero" : "grid",
                          x, x, top, bottom);
      const double place = scale_.place(tick);
      texts += fmt::format("<text class=\"tick\" x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>", x, bottom + 15,
                           place < 60    ? "start"
                           : place > 940 ? "end"
                                         : "middle",
                           tick_text(tick));
    }
    std::string lines;
    for (const Line* line : drawn_) {
      const std::string x = percent(scale_.place(line->value->get<double>()));
      lines += fmt::format("<line class=\"{}\" x1=\"{}\" x2=\"{}\" y1=\"{}\" y2=\"{}\"/>",
                           line->is_limit ? "limit" : "ceiling", x, x, kGap, bottom);
    }
    return "<g aria-hidden=\"true\">" + grid + texts + "</g>\n" + lines + "\n";
  }

  /// Names of rows beside the line at which the axis begins, and values at its end.
  [[nodiscard]] std::string labels() const {
    return fmt::format("<svg x=\"{}%\">{}</svg>\n{}\n", kInset, labels_, values_);
  }

  [[nodiscard]] std::string line_label(const Line& line, int y) const {
    const double place = scale_.place(line.value->get<double>());
    const std::string number = rounded(*line.value);
    const int width = width_of(line.label) + width_of(number) + 200;
    const bool left = width <= place * kLineRoom;
    const bool right = !left && width <= (1000 - place) * kLineRoom;
    return fmt::format(
        "<text class=\"{}\" x=\"{}\" y=\"{}\" dx=\"{}\" text-anchor=\"{}\">{} <tspan{}>{}</tspan></text>\n",
        line.is_limit ? "limit" : "ceiling", left || right ? percent(place) : "100%", y,
        left    ? -5
        : right ? 5
                : 0,
        right ? "start" : "end", escape(line.label), value_attribute(*line.value), number);
  }

  int draw_row(const Row& row, int y) {
    const std::vector<std::string> lines = lines_of(row.label);
    const bool alone = row.marks.size() == 1 && row.marks.front().number != nullptr;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      labels_ += fmt::format("<text x=\"5\" y=\"{}\">{}</text>", y + 12, escape(lines[i]));
      if (i == 0 && alone) {
        const Json& number = *row.marks.front().number;
        values_ += fmt::format("<text class=\"value\" x=\"100%\" y=\"{}\"{}>{}</text>", y + 12, value_attribute(number),
                               rounded(number));
      }
      y += kLine;
    }
    for (const Mark& mark : row.marks) draw_mark(row, mark, y + kTrack / 2);
    return y + kTrack + kGap;
  }

  void draw_mark(const Row& row, const Mark& mark, int y) {
    const bool many = !chart_.series.empty();
    const std::string style =
        many ? fmt::format("s{}", mark.series % kSymbols) : fmt::format("r{}", static_cast<int>(row.role));
    Paths& paths = paths_[style];
    const auto at = [&](double value) { return fmt::format("M{:.0f} {}", scale_.place(value), y); };
    const auto to = [&](double value) { return fmt::format("H{:.0f}", scale_.place(value)); };
    if (row.marks.size() == 1) {
      for (const double sample : mark.samples) paths.samples += at(sample) + "h0";
    }
    if (mark.low && mark.high) paths.intervals += at(*mark.low) + to(*mark.high);
    if (mark.number == nullptr) return;
    if (!many && scale_.kind() == Scale::Kind::from_zero) paths.bars += at(0) + to(mark.value);
    if (style == "r0" || style == "s0") {  // circles, which a path of dots draws too
      paths.marks += at(mark.value) + "h0";
      return;
    }
    marks_ += fmt::format("<use class=\"{0}\" href=\"#{0}\" x=\"{1}\" y=\"{2}\"/>", style,
                          percent(scale_.place(mark.value)), y);
  }

  /// Bars, intervals and samples, in a picture of their own that is as wide as the axis and 1000 units across.
  [[nodiscard]] std::string tracks(int height) const {
    std::string bars, intervals, samples, marks;
    const auto add = [](std::string& to, const char* name, const std::string& style, const std::string& path) {
      if (!path.empty()) to += fmt::format("<path class=\"{} {}\" d=\"{}\"/>\n", name, style, path);
    };
    for (const auto& [style, paths] : paths_) {
      add(bars, "bars", style, paths.bars);
      add(intervals, "intervals", style, paths.intervals);
      add(samples, "samples", style, paths.samples);
      add(marks, "marks", style, paths.marks);
    }
    return fmt::format(
        "<svg x=\"{}%\" width=\"{}%\" height=\"{}\" viewBox=\"0 0 1000 {}\" preserveAspectRatio=\"none\" "
        "aria-hidden=\"true\">\n{}{}{}{}</svg>\n",
        kInset, 100 - 2 * kInset, height, height, bars, samples, intervals, marks);
  }

  [[nodiscard]] std::string beyond() const {
    if (beyond_.empty()) return "";
    std::string text;
    for (const Line* line : beyond_)
      text += (text.empty() ? "" : ", ") + escape(line->label) + " " + data(*line->value);
    return "<p class=\"beyond\">Beyond the axis: " + text + "</p>\n";
  }

  const Chart& chart_;
  const std::string& id_;
  Scale scale_;
  std::vector<const Line*> drawn_, beyond_;
  std::string line_labels_;
  struct Paths {
    std::string bars, intervals, samples, marks;
  };
  std::map<std::string, Paths> paths_;  ///< by style
  std::string marks_, labels_, values_;
};

std::string small_symbol(const std::string& name) {
  return fmt::format(
      "<svg class=\"key\" width=\"14\" height=\"14\" aria-hidden=\"true\"><use class=\"{0}\" href=\"#{0}\" "
      "x=\"7\" y=\"7\"/></svg>",
      name);
}

}  // namespace

Role role_of(std::string_view name) {
  if (name.ends_with("again") || name.find("control") != std::string_view::npos) return Role::control;
  const bool peer = std::ranges::any_of(kPeers, [&](std::string_view word) {
    const std::size_t at = name.find(word);
    if (at == std::string_view::npos) return false;
    const std::size_t end = at + word.size();
    const auto letter = [&](std::size_t i) { return name[i] >= 'a' && name[i] <= 'z'; };
    return (at == 0 || !letter(at - 1)) && (end == name.size() || !letter(end));
  });
  return peer && !name.starts_with("messages") && !name.starts_with("warpline") ? Role::peer : Role::subject;
}

Mark mark_of(const Statistic& statistic, std::size_t series) {
  Mark mark;
  mark.value = statistic.median->get<double>();
  mark.samples = statistic.samples;
  mark.series = series;
  mark.number = statistic.median;
  if (statistic.low != nullptr) {
    mark.low = statistic.low->get<double>();
    mark.high = statistic.high->get<double>();
  }
  return mark;
}

std::string draw(const Chart& chart, const std::string& id) {
  // Where all is zero, such as losses, there is nothing to see.
  const bool empty = std::ranges::all_of(chart.rows, [](const Row& row) {
    return std::ranges::all_of(row.marks, [](const Mark& mark) { return mark.value == 0 && mark.samples.empty(); });
  });
  return empty ? "" : Drawing(chart, id).html();
}

std::string symbols() {
  return R"(<svg class="symbols" width="0" height="0" aria-hidden="true"><defs>
<g id="r0"><circle r="5"/></g>
<g id="r1"><path d="M0-6 6 0 0 6-6 0Z"/></g>
<g id="r2"><circle class="hollow" r="4.2"/></g>
<g id="s0"><circle r="5"/></g>
<g id="s1"><path d="M0-6 6 0 0 6-6 0Z"/></g>
<g id="s2"><rect x="-4.5" y="-4.5" width="9" height="9"/></g>
<g id="s3"><path d="M0-5.5 5.5 4.5H-5.5Z"/></g>
<g id="s4"><circle class="hollow" r="4.2"/></g>
<g id="s5"><path d="M0 5.5-5.5-4.5H5.5Z"/></g>
<g id="s6"><rect class="hollow" x="-4" y="-4" width="8" height="8"/></g>
<g id="s7"><path class="hollow" d="M-4.5-4.5 4.5 4.5M-4.5 4.5 4.5-4.5"/></g>
</defs></svg>
)";
}

std::string symbol(std::size_t series) { return small_symbol(fmt::format("s{}", series % kSymbols)); }
std::string symbol(Role role) { return small_symbol(fmt::format("r{}", static_cast<int>(role))); }

}  // namespace warpline::page
