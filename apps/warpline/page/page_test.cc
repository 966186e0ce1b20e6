// SPDX-License-Identifier: Apache-2.0
#include "page/page.h"

#include <gtest/gtest.h>

#include "page/document/verdict.h"

namespace warpline::page {
namespace {

Document made(const std::string& text, const std::string& name = "a.json") {
  auto document = read_document(text, "folder/" + name);
  EXPECT_TRUE(document.ok()) << (document.ok() ? "" : document.error().message());
  return document.ok() ? *std::move(document) : Document{};
}

TEST(Page, StrangersAreRefused) {
  for (const char* text :
       {"", "{", "[]", "{}", "1", R"({"name": "x"})", R"({"schema_version": 1})",
        R"({"schema_version": 2, "command": "x"})", R"({"command": "x"})", "{\"benchmark\": \"\xff\"}"}) {
    const auto document = read_document(text, "x.json");
    ASSERT_FALSE(document.ok()) << text;
    EXPECT_EQ(document.error().kind, ErrorKind::usage);
    EXPECT_EQ(document.error().what, "cannot draw 'x.json'");
  }
  const std::string deep = R"({"benchmark": "b", "a": )" + std::string(64, '[') + std::string(64, ']') + "}";
  EXPECT_NE(read_document(deep, "x").error().why.find("nested deeper"), std::string::npos);
  EXPECT_TRUE(
      read_document(
          R"({"benchmark": "b", "a": "[[[[[[[[\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["})", "x")
          .ok());
}

TEST(Page, AReportOfARunIsItsOwnConfiguration) {
  const Document run = made(
      R"({"schema_version": 1, "command": "forward", "config": {"forward": {}}, "rate": {"mpps": 1.5}})", "run.json");
  EXPECT_EQ(run.command, "warpline forward --config run.json --json");
  const Document micro = made(R"({"context": {"date": "d", "executable": "build/ring_bench"}, "benchmarks": []})");
  EXPECT_EQ(micro.subject, "ring_bench");
}

TEST(Page, VerdictsAreFoundByTheirKeys) {
  const Document document = made(
      R"({"benchmark": "b", "verdict": "pass", "part": {"verdicts": {"one": "fail", "two": {"ratio": 1.5, "met": true}}},
      "verdicts": [{"expected": "more", "seen": "less", "met": false}], "verify": {"passed": true}})");
  std::vector<std::pair<State, std::string>> found;
  for (const Verdict& verdict : verdicts_of(document)) found.emplace_back(verdict.state, verdict.subject);
  const std::vector<std::pair<State, std::string>> expected = {{State::met, "verdict"},
                                                               {State::missed, "part · one"},
                                                               {State::met, "part · two"},
                                                               {State::missed, "more"},
                                                               {State::met, "verify"}};
  EXPECT_EQ(found, expected);
}

TEST(Page, ManyVerdictsAreCountedAndTheMissedOnesNamed) {
  Json json = {{"benchmark", "b"}, {"runs", Json::array()}};
  for (int i = 0; i < 30; ++i) {
    json["runs"].push_back({{"name", "run " + std::to_string(i)},
                            {"outcome", i == 7       ? "failed"
                                        : i % 3 == 0 ? "refused"
                                                     : "good"}});
  }
  const std::vector<Verdict> verdicts = verdicts_of(made(json.dump()));
  ASSERT_EQ(verdicts.size(), 3U);
  EXPECT_EQ(verdicts[0].count + verdicts[1].count, 29U);
  EXPECT_EQ(verdicts[2].subject, "run 7");
  EXPECT_EQ(verdicts[2].state, State::missed);
}

TEST(Page, TheSameDocumentsGiveTheSamePageWithAllTheyHold) {
  const std::string text =
      R"({"benchmark": "b", "command": "run me", "commit": "abc", "date": "2026-01-02", "host": {"cpu": "the cpu"},
      "ceilings": {"top_mpps": 12}, "rows": [{"name": "first row", "rate_mpps": {"median": 3.5, "ci95": [3, 4], "samples": [3.1, 3.9]}},
      {"name": "second row", "rate_mpps": {"median": 7}}], "odd": [[1], null, "odd text"]})";
  std::vector<Document> documents = {made(text), made(text)};
  const std::string html = page(documents);
  EXPECT_EQ(html, page(documents));
  for (const char* part : {"run me", "abc", "2026-01-02", "the cpu", "first row", "second row", "odd text",
                           "<svg role=\"img\"", "rate mpps", "id=\"r-a-2\"", "×1.000"})
    EXPECT_NE(html.find(part), std::string::npos) << part;
}

}  // namespace
}  // namespace warpline::page
