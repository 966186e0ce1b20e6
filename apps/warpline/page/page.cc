// SPDX-License-Identifier: Apache-2.0
#include "page/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "page/body/body.h"
#include "page/compare.h"
#include "page/document/shape.h"
#include "page/document/verdict.h"
#include "page/draw/chart.h"
#include "page/draw/table.h"
#include "page/text/markup.h"

namespace warpline::page {
namespace {

struct Counts {
  std::size_t met = 0, missed = 0, other = 0;

  void add(const Verdict& verdict) {
    (verdict.state == State::met ? met : verdict.state == State::missed ? missed : other) += verdict.count;
  }
};

/// A number that was counted here, with where: the browser's test counts again.
std::string counted(const Document* document, std::string_view state, std::size_t number) {
  const std::string of = document == nullptr ? "" : fmt::format(" data-of=\"{}\"", document->id);
  return fmt::format("<data class=\"counted\" data-state=\"{}\"{} value=\"{}\">{}</data>", state, of, number, number);
}

void give_ids(std::vector<Document>& documents) {
  std::set<std::string> taken;
  for (Document& document : documents) {
    std::string base = "r-";
    for (const char c : document.name.substr(0, document.name.rfind(".json"))) {
      base += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '-';
    }
    document.id = base;
    for (int i = 2; !taken.insert(document.id).second; ++i) document.id = fmt::format("{}-{}", base, i);
  }
}

std::string link(const Document& document) {
  return fmt::format("<a href=\"#{}\">{}</a>", document.id, escape(document.name));
}

std::string verdict_item(const Verdict& verdict, const Document* document) {
  std::string html = "<li>" + badge(verdict.state, verdict.word) + "<span>" + escape(verdict.subject);
  if (!verdict.key.empty()) {
    html += fmt::format(": <data class=\"counted\" data-key=\"{}\" data-word=\"{}\" value=\"{}\">{}</data>",
                        escape(verdict.key), escape(verdict.word), verdict.count, verdict.count);
  }
  if (!verdict.evidence.empty()) html += " <span class=\"evidence\">" + verdict.evidence + "</span>";
  if (document != nullptr) html += " <span class=\"of\">" + link(*document) + "</span>";
  return html + "</span></li>\n";
}

std::string overview(const std::vector<Document>& documents, const std::vector<std::vector<Verdict>>& verdicts) {
  Counts all;
  std::string rows, missed;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    Counts counts;
    for (const Verdict& verdict : verdicts[i]) {
      counts.add(verdict);
      all.add(verdict);
      if (verdict.state == State::missed) missed += verdict_item(verdict, &documents[i]);
    }
    const auto number = [&](std::string_view state, std::size_t count) {
      return count == 0 ? std::string("<td class=\"zero\">–</td>")
                        : fmt::format("<td class=\"{}\">{}</td>", state, counted(&documents[i], state, count));
    };
    rows += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"date\">{}</td>{}{}{}</tr>\n",
                        link(documents[i]), escape(documents[i].title), escape(documents[i].date.substr(0, 10)),
                        number("met", counts.met), number("missed", counts.missed), number("neutral", counts.other));
  }
  std::string html = fmt::format(
      "<section id=\"verdicts\">\n<h2>Verdicts</h2>\n<p class=\"sum\"><span class=\"met\">{} met</span> "
      "<span class=\"missed\">{} missed</span></p>\n",
      counted(nullptr, "met", all.met), counted(nullptr, "missed", all.missed));
  if (documents.size() == 1) return html + "</section>\n";
  if (!missed.empty()) html += "<h3>Missed</h3>\n<ul class=\"verdicts\">\n" + missed + "</ul>\n";
  return html +
         "<h3>All results</h3>\n<div class=\"all\" role=\"region\" tabindex=\"0\" aria-label=\"Results and their "
         "verdicts\">\n<table>\n"
         "<caption>Results and their verdicts</caption>\n<thead><tr><th scope=\"col\">file</th><th "
         "scope=\"col\">about</th>"
         "<th scope=\"col\">date</th><th scope=\"col\">met</th><th scope=\"col\">missed</th><th "
         "scope=\"col\">other</th></tr></thead>\n"
         "<tbody>\n" +
         rows + "</tbody>\n</table>\n</div>\n</section>\n";
}

std::string guide() {
  return "<details class=\"guide\">\n<summary>How to read this page</summary>\n<ul>\n<li>" + symbol(Role::subject) +
         "a median; the bar through it is its interval, the small dots are the samples.</li>\n<li>" +
         symbol(Role::peer) + "what it is compared with: another program, the kernel, a floor.</li>\n<li>" +
         symbol(Role::control) +
         "a control: the same thing measured once more. Its distance from the first is chance.</li>\n"
         "<li>A solid line across a plot is the limit that a verdict is about; dotted lines are ceilings of the "
         "machine.</li>\n"
         "<li>Numbers are rounded for reading. The full number is in the source of the page, as the attribute "
         "value.</li>\n"
         "<li><span class=\"computed\">Numbers in this style</span> were computed for this page out of two "
         "others.</li>\n"
         "</ul>\n</details>\n";
}

std::string head_of(const Document& document) {
  std::string items;
  const auto add = [&](const char* name, const std::string& html) {
    if (!html.empty()) items += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", name, html);
  };
  add("file", "<code>" + escape(document.name) + "</code>");
  if (!document.date.empty()) add("date", fmt::format("<time datetime=\"{0}\">{0}</time>", escape(document.date)));
  if (!document.commit.empty()) {
    add("commit",
        "<code>" + escape(document.commit) + "</code>" + (document.modified ? ", sources changed since" : ""));
  }
  std::string html = "<dl class=\"facts\">\n" + items + "</dl>\n";
  const std::string question = string_member(document.json, "question");
  if (!question.empty()) html = "<p>" + escape(question) + "</p>\n" + html;
  if (!document.command.empty()) {
    html += "<p class=\"again\">To make it again:</p>\n<pre class=\"command\"><code>" + escape(document.command) +
            "</code></pre>\n";
  }
  return html;
}

std::string machine_of(const Document& document) {
  const Json machine = machine_facts(document);
  std::string html;
  for (const auto& [key, value] : machine.items()) {
    if (value.is_object()) {
      html += "<h4>" + escape(words(key)) + "</h4>\n" + facts(value);
    } else if (is_object_array(value)) {
      html += "<h4>" + escape(words(key)) + "</h4>\n";
      for (const Json& element : value) html += facts(element);
    } else {
      Json single = Json::object();
      single[key] = value;
      html += facts(single);
    }
  }
  const std::string line = machine_html(document);
  return html.empty() ? ""
                      : "<details class=\"machine\">\n<summary>The machine" + (line.empty() ? "" : ": " + line) +
                            "</summary>\n" + html + "</details>\n";
}

std::string article(const Document& document, const std::vector<Verdict>& verdicts) {
  std::string html = fmt::format("<article id=\"{}\" data-file=\"{}\">\n<h2>{}</h2>\n", document.id,
                                 escape(document.name), escape(document.title));
  html += head_of(document) + machine_of(document);
  std::string items;
  for (const Verdict& verdict : verdicts) items += verdict_item(verdict, nullptr);
  if (!items.empty()) html += "<section>\n<h3>Verdicts</h3>\n<ul class=\"verdicts\">\n" + items + "</ul>\n</section>\n";
  return html + body(document) + "<p class=\"up\"><a href=\"#top\">Back to the top</a></p>\n</article>\n";
}

}  // namespace

std::string page(std::vector<Document>& documents) {
  give_ids(documents);
  std::vector<std::vector<Verdict>> verdicts;
  for (const Document& document : documents) verdicts.push_back(verdicts_of(document));
  const std::string title =
      documents.size() == 1 ? "Warpline: " + documents.front().title : "Warpline: what was measured";
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n"
      "<title>{0}</title>\n<style>\n{1}</style>\n</head>\n<body>\n<header>\n<h1>{0}</h1>\n</header>\n<main>\n",
      escape(title), style());
  html += symbols() + guide() + overview(documents, verdicts) + comparisons(documents);
  for (std::size_t i = 0; i < documents.size(); ++i) html += article(documents[i], verdicts[i]);
  return html +
         "</main>\n<footer><p>Made by <code>warpline report</code> from the files named here and nothing "
         "else.</p></footer>\n"
         "</body>\n</html>\n";
}

}  // namespace warpline::page
