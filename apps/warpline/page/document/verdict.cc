// SPDX-License-Identifier: Apache-2.0
#include "page/document/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "page/document/shape.h"
#include "page/text/markup.h"
#include "page/text/names.h"

namespace warpline::page {
namespace {

constexpr std::size_t kMany = 16;
constexpr std::size_t kMostEvidence = 6;

constexpr std::string_view kMetWords[] = {"pass", "passed", "met",  "good",    "clean",
                                          "ok",   "ready",  "fine", "reached", "yes"};
constexpr std::string_view kMissedWords[] = {"fail", "failed", "missed", "bad",  "found", "missing",
                                             "lost", "wrong",  "hung",   "hang", "no",    "killed"};
constexpr std::string_view kWordKeys[] = {"verdict", "outcome", "health"};
constexpr std::string_view kFlagKeys[] = {"met", "reached", "passed", "conserved", "ready"};

std::string interval_text(const Statistic& statistic) {
  std::string text = data(*statistic.median);
  if (statistic.low != nullptr) text += fmt::format(" [{}, {}]", data(*statistic.low), data(*statistic.high));
  return text;
}

void add(std::string& evidence, const std::string& part) { evidence += (evidence.empty() ? "" : "; ") + part; }

/// What stands beside a verdict that is a word: the ratio or the best setup, and the limit.
std::string evidence_beside(const Json& object) {
  std::string text;
  if (const Json* ratio = member(object, "ratio")) {
    if (const auto statistic = as_statistic(*ratio)) add(text, "ratio " + interval_text(*statistic));
  }
  const Json *setups = member(object, "setups"), *unit = member(object, "unit");
  const std::string best = string_member(object, "best");
  if (const Json* setup = setups == nullptr ? nullptr : member(*setups, best)) {
    const std::string unit_text = unit == nullptr ? "" : " " + scalar(*unit);
    if (const auto statistic = as_statistic(*setup))
      add(text, interval_text(*statistic) + unit_text + " (" + escape(best) + ")");
  }
  if (const Json* limit = member(object, "limit"); limit != nullptr && limit->is_number()) {
    const std::string side = string_member(object, "limit_is");
    add(text, "limit: " + (side.empty() ? "" : "at " + escape(side) + " ") + data(*limit));
  }
  return text;
}

/// The scalars beside a verdict that is a boolean.
std::string evidence_among(const Json& object, std::string_view verdict) {
  std::string text;
  std::size_t parts = 0;
  for (const auto& [key, value] : object.items()) {
    if (key == verdict || key == "expected" || key == "schema_version" || key == "command" || !is_scalar(value) ||
        ++parts > kMostEvidence)
      continue;
    add(text, escape(words(key)) + " " + scalar(value));
  }
  return text;
}

class Collector {
 public:
  std::vector<Verdict> collect(const Document& document) && {
    count(document.json);
    for (const auto& [key, number] : occurrences_) {
      if (number > kMany) add_many(key);
    }
    walk(document.json, "", true);
    return std::move(found_);
  }

 private:
  void count(const Json& value) {
    if (value.is_object()) {
      for (const auto& [key, inner] : value.items()) {
        if (is_judged(key, inner)) {
          ++occurrences_[key];
          ++words_[key][word_of(inner)];
        }
      }
    }
    if (value.is_structured()) {
      for (const Json& inner : value) count(inner);
    }
  }

  static bool is_judged(std::string_view key, const Json& value) {
    return (value.is_string() && is_verdict_word_key(key)) || (value.is_boolean() && is_verdict_flag_key(key));
  }

  static std::string word_of(const Json& value) {
    return value.is_string() ? value.get<std::string>() : value.get<bool>() ? "met" : "missed";
  }

  /// One verdict for each word that is there often.
  void add_many(const std::string& key) {
    for (const auto& [word, number] : words_[key]) {
      if (state_of(word) == State::missed) continue;  // told one by one
      found_.push_back({state_of(word), word,
                        key == "passed"    ? "checks"
                        : key == "outcome" ? "runs"
                                           : words(key),
                        "", key, number});
    }
  }

  void walk(const Json& value, const std::string& subject, bool root) {
    const auto joined = [&](const std::string& part) { return subject.empty() ? part : subject + " · " + part; };
    if (value.is_array()) {
      const std::vector<std::string> names = labels(value);
      for (std::size_t i = 0; i < value.size(); ++i) {
        const bool named = !names[i].empty() && member(value[i], "expected") == nullptr;
        if (value[i].is_structured()) walk(value[i], named ? joined(names[i]) : subject, false);
      }
      return;
    }
    for (const auto& [key, inner] : value.items()) {
      if (is_judged(key, inner)) {
        judge(key, value, subject.empty() ? words(key) : subject);
      } else if (key == "verdicts" && inner.is_object()) {
        for (const auto& [name, verdict] : inner.items()) {
          if (verdict.is_string())
            note(State{state_of(verdict.get<std::string>())}, verdict.get<std::string>(), joined(words(name)), "");
          if (verdict.is_structured()) walk(verdict, joined(words(name)), false);
        }
      } else if (inner.is_structured() && !(root && is_head_key(key))) {
        walk(inner, says_nothing(key) ? subject : joined(words(key)), false);
      }
    }
  }

  void judge(const std::string& key, const Json& object, const std::string& subject) {
    const Json& value = object.at(key);
    const std::string word = word_of(value);
    if (occurrences_[key] > kMany && state_of(word) != State::missed) return;
    const std::string expected = string_member(object, "expected");
    const std::string what = expected.empty() ? subject : subject == words(key) ? expected : subject + " · " + expected;
    note(state_of(word), word, what, value.is_string() ? evidence_beside(object) : evidence_among(object, key));
  }

  void note(State state, std::string word, std::string subject, std::string evidence) {
    found_.push_back({state, std::move(word), std::move(subject), std::move(evidence), "", 1});
  }

  std::vector<Verdict> found_;
  std::map<std::string, std::size_t> occurrences_;
  std::map<std::string, std::map<std::string, std::size_t>> words_;
};

}  // namespace

State state_of(std::string_view word) {
  if (is_among(word, kMetWords)) return State::met;
  return is_among(word, kMissedWords) ? State::missed : State::neutral;
}

bool is_verdict_word_key(std::string_view key) { return is_among(key, kWordKeys); }
bool is_verdict_flag_key(std::string_view key) { return is_among(key, kFlagKeys); }

std::vector<Verdict> verdicts_of(const Document& document) { return Collector().collect(document); }

std::string badge(State state, std::string_view word) {
  const char* name = state == State::met ? "met" : state == State::missed ? "missed" : "neutral";
  return fmt::format("<span class=\"badge {}\">{}</span>", name, escape(word));
}

}  // namespace warpline::page
