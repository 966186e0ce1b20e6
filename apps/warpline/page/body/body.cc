// SPDX-License-Identifier: Apache-2.0
#include "page/body/body.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "page/body/contenders.h"
#include "page/body/figures.h"
#include "page/body/pieces.h"
#include "page/body/records.h"
#include "page/document/shape.h"
#include "page/draw/table.h"
#include "page/text/markup.h"
#include "page/text/names.h"
#include "page/text/unit.h"

namespace warpline::page {
namespace {

/// Members of a document that are long and of interest to few.
constexpr std::string_view kFolded[] = {"config", "commands", "checks",   "samples", "report",
                                        "stderr", "proof",    "verified", "lcores"};

std::string texts(const Json& value, bool root) {
  std::string html;
  for (const std::string_view key : kTexts) {
    const std::string text = string_member(value, key);
    if (!text.empty() && !(root && key == "title")) html += "<p>" + escape(text) + "</p>\n";
  }
  return html;
}

std::string list(const Json& array) {
  if (array.empty()) return "<p class=\"none\">none</p>\n";
  std::string html = "<ul>\n";
  for (const Json& element : array) html += "<li>" + cell("", element) + "</li>\n";
  return html + "</ul>\n";
}

class Body {
 public:
  explicit Body(const Document& document) : document_(document), ceilings_(document.json), charts_(document.id) {
    if (const Json* units = member(document.json, "units"); units != nullptr && units->is_object()) units_ = units;
  }

  std::string html() {
    const Around around{
        .title = document_.title, .unit = string_member(document_.json, "unit"), .limits = {}, .level = 3};
    return object(document_.json, around, true);
  }

 private:
  std::string object(const Json& value, Around around, bool root) {
    if (const std::string unit = string_member(value, "unit"); !unit.empty()) around.unit = unit;
    const Json* limit = member(value, "limit");
    if (limit != nullptr && limit->is_number()) {
      const std::string side = string_member(value, "limit_is");
      around.limits = {{side.empty() ? "limit" : "limit, at " + side, limit, true}};
    }
    std::string html = texts(value, root);
    html += scalars(value, around, root, charts_);
    html += lone_statistics(value, around, charts_);
    std::set<const Json*> told;
    html += sibling_records(value, around, root, charts_, told);
    for (const auto& [key, inner] : value.items()) {
      if (is_scalar(inner) || as_statistic(inner) || (root && is_head_key(key)) || is_told_elsewhere(value, key) ||
          told.contains(&inner))
        continue;
      html += member_html(value, key, inner, around);
    }
    return html;
  }

  std::string member_html(const Json& owner, const std::string& key, const Json& inner, const Around& around) {
    Around below = around;
    const bool named = !says_nothing(key);
    if (named) below.title = words(key);
    if (named) below.level = around.level + 1;
    below.unit = unit_of(key, around.unit);
    if (units_ != nullptr && !string_member(*units_, key).empty()) below.unit = string_member(*units_, key);
    std::string content;
    if (is_statistic_map(inner)) {
      content = statistic_map(owner, key, inner, below, ceilings_, charts_);
    } else if (is_record_map(inner)) {
      content = record_map(inner, below);
    } else if (is_object_array(inner)) {
      content = object_array(inner, below);
    } else if (is_number_array(inner)) {
      content = number_array(inner, below, charts_);
    } else if (inner.is_array()) {
      content = list(inner);
    } else if (inner.empty()) {
      content = "<p class=\"none\">none</p>\n";
    } else {
      content = object(inner, below, false);
    }
    if (!named) return content;
    return is_among(key, kFolded) ? folded(below.title, content) : section(below.title, around.level, content);
  }

  std::string record_map(const Json& map, const Around& around) {
    if (!std::ranges::all_of(map, is_flat_record)) {
      std::string html;
      for (const auto& [key, inner] : map.items()) {
        Around below = around;
        below.title = words(key);
        below.level = around.level + 1;
        html += section(below.title, around.level, object(inner, below, false));
      }
      return html;
    }
    std::vector<Record> records;
    for (const auto& [key, inner] : map.items()) records.push_back({words(key), leaves(inner)});
    return records_html(records, around, &map, charts_);
  }

  std::string object_array(const Json& array, const Around& around) {
    const std::vector<std::string> names = labels(array);
    if (const std::string key = contenders_key(array); !key.empty()) {
      return contenders_html(array, key, names, around, charts_);
    }
    if (!std::ranges::all_of(array, is_flat_record)) {
      std::string html;
      for (std::size_t i = 0; i < array.size(); ++i) {
        Around below = around;
        if (names[i].empty()) {
          html += object(array[i], below, false);
          continue;
        }
        below.title = names[i];
        below.level = around.level + 1;
        html += section(below.title, around.level, object(array[i], below, false));
      }
      return html;
    }
    std::vector<Record> records;
    for (std::size_t i = 0; i < array.size(); ++i) {
      Record record{names[i], leaves(array[i])};
      std::erase_if(record.leaves, [](const Leaf& leaf) { return leaf.path == "name"; });
      records.push_back(std::move(record));
    }
    return records_html(records, around, &array, charts_);
  }

  const Document& document_;
  const Json* units_ = nullptr;
  Ceilings ceilings_;
  Charts charts_;
};

}  // namespace

std::string body(const Document& document) { return Body(document).html(); }

}  // namespace warpline::page
