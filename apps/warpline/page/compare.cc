// SPDX-License-Identifier: Apache-2.0
#include "page/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "page/document/shape.h"
#include "page/draw/chart.h"
#include "page/draw/table.h"
#include "page/text/markup.h"
#include "page/text/names.h"
#include "page/text/unit.h"

namespace warpline::page {
namespace {

constexpr std::string_view kSettings[] = {"config", "schema_version", "seed", "rounds", "samples", "count"};

/// A figure that several documents may have, by the names on the way to it.
struct Figure {
  std::string name;
  const Json* value;
};

class Figures {
 public:
  /// The medians of a document; of one without statistics, its numbers.
  static std::vector<Figure> of(const Document& document) {
    Figures medians(true);
    medians.walk(document.json, "", true);
    if (!medians.found_.empty()) return std::move(medians.found_);
    Figures all(false);
    all.walk(document.json, "", true);
    return std::move(all.found_);
  }

 private:
  explicit Figures(bool medians) : medians_(medians) {}

  void walk(const Json& value, const std::string& name, bool root) {
    const auto joined = [&](const std::string& part) {
      return name.empty() ? part : part.empty() ? name : name + " · " + part;
    };
    if (as_statistic(value) || (value.is_number() && !medians_)) {
      if (taken_.insert(name).second) found_.push_back({name, &value});
    } else if (is_object_array(value)) {
      const std::vector<std::string> names = labels(value);
      for (std::size_t i = 0; i < value.size(); ++i) walk(value[i], joined(names[i]), false);
    } else if (value.is_object()) {
      for (const auto& [key, inner] : value.items()) {
        if ((root && is_head_key(key)) || is_among(key, kSettings)) continue;
        walk(inner, joined(says_nothing(key) ? "" : words(key)), false);
      }
    }
  }

  bool medians_;
  std::vector<Figure> found_;
  std::set<std::string> taken_;  ///< the first figure of a name stands for it
};

const Json& number_of(const Json& value) { return value.is_number() ? value : value.at("median"); }

/// The ratio of a run's number to that of the run in another column of the same row, so that it can be computed again.
std::string ratio(const Json& now, const Json& before, std::size_t column) {
  const double below = before.get<double>();
  if (below == 0) return "";
  const std::string text = fmt::format("{:.3f}", now.get<double>() / below);
  return fmt::format(" <data class=\"computed\" data-to=\"{}\" value=\"{}\">×{}</data>", column, text, text);
}

using Group = std::vector<const Document*>;

/// The documents as columns; figures that at least two of them have as rows.
std::string compare(const Group& group) {
  std::vector<std::string> names;
  std::map<std::string, std::vector<const Json*>> rows;
  for (std::size_t i = 0; i < group.size(); ++i) {
    for (const Figure& figure : Figures::of(*group[i])) {
      const auto [row, is_new] = rows.try_emplace(figure.name, group.size());
      if (is_new) names.push_back(figure.name);
      row->second[i] = figure.value;
    }
  }
  std::erase_if(names, [&](const std::string& name) {
    return std::ranges::count_if(rows.at(name), [](const Json* value) { return value != nullptr; }) < 2;
  });
  if (names.empty()) return "";
  std::string heads, runs;
  std::vector<std::size_t> before(group.size(), group.size());  // index of the run before on the same machine
  for (std::size_t i = 0; i < group.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (same_machine(*group[i], *group[j])) before[i] = j;
    }
    const std::string link = fmt::format("<a href=\"#{}\">{}</a>", group[i]->id, escape(group[i]->name));
    heads += "<th scope=\"col\">" + link + "</th>";
    runs += "<tr><th scope=\"row\">" + link + "</th><td>" + escape(group[i]->date) + "</td><td>" +
            machine_html(*group[i]) + "</td><td>" +
            (before[i] < group.size() ? "to " + escape(group[before[i]]->name)
                                      : "<span class=\"none\">none: first on its machine</span>") +
            "</td></tr>\n";
  }
  const std::string caption = escape(group.front()->title);
  std::string html = fmt::format(
      "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"Runs of {0}\">\n<table>\n<caption>Runs of "
      "{0}</caption>\n<thead><tr>"
      "<th scope=\"col\">run</th><th scope=\"col\">date</th><th scope=\"col\">machine</th><th scope=\"col\">ratios "
      "are</th></tr></thead>\n"
      "<tbody>\n{1}</tbody>\n</table>\n</div>\n",
      caption, runs);
  html += fmt::format(
      "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"Medians of {0}\">\n<table>\n<caption>Medians "
      "of {0}"
      "</caption>\n<thead><tr><th scope=\"col\">figure</th>{1}</tr></thead>\n<tbody>\n",
      caption, heads);
  for (const std::string& name : names) {
    html += "<tr><th scope=\"row\">" + escape(name);
    const std::vector<const Json*>& row = rows.at(name);
    for (std::size_t i = 0; i < group.size(); ++i) {
      html += "<td>";
      if (row[i] != nullptr) {
        html += data(number_of(*row[i]));
        std::size_t other = before[i];
        while (other < group.size() && row[other] == nullptr) other = before[other];
        if (other < group.size()) html += ratio(number_of(*row[i]), number_of(*row[other]), other);
      }
    }
    html += "\n";
  }
  return "<details>\n<summary>" + caption + "</summary>\n" + html + "</tbody>\n</table>\n</div>\n</details>\n";
}

}  // namespace

std::string comparisons(const std::vector<Document>& documents) {
  std::vector<Group> groups;
  for (const Document& document : documents) {
    const auto found =
        std::ranges::find_if(groups, [&](const Group& group) { return group.front()->subject == document.subject; });
    if (found == groups.end()) {
      groups.push_back({&document});
    } else {
      found->push_back(&document);
    }
  }
  std::string html;
  for (Group& group : groups) {
    if (group.size() < 2) continue;
    // Runs of one date stay in the order given: all lie in one vector.
    std::ranges::sort(group, {}, [](const Document* document) { return std::pair(document->date, document); });
    html += compare(group);
  }
  if (html.empty()) return "";
  return "<section id=\"compared\">\n<h2>Runs and the runs before</h2>\n<p>Ratios are of a median to the one of the "
         "run before on the same "
         "machine. Other machines stand beside without a ratio: absolute speeds of different machines do not "
         "compare.</p>\n" +
         html + "</section>\n";
}

}  // namespace warpline::page
