// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "page/text/json.h"
#include "warpline/base/result.h"

namespace warpline::page {

/// `Document` is one file: a result of a benchmark or the report of a run, and what is said of it at the head.
struct Document {
  std::string name;       ///< of the file, without folders
  std::string id;         ///< of its part of the page, unique there
  std::string subject;    ///< what made it: two documents of one subject are compared
  std::string title;      ///< for people
  std::string date;       ///< "" if the file has none
  std::string commit;     ///< "" if the file has none
  bool modified = false;  ///< the commit's sources had been changed
  std::string command;    ///< makes it again; "" if the file does not say
  Json json;
};

/// Reads the text of a file: what a program or script of this project wrote as JSON, or Google Benchmark's JSON. `path`
/// names it; messages quote it. Anything else, and nesting deeper than 64 levels, is a usage error.
[[nodiscard]] Result<Document> read_document(std::string_view text, const std::string& path);

/// What a document says about its machine: objects and scalars by key, in the order of the file.
[[nodiscard]] Json machine_facts(const Document& document);
/// One line of HTML about the machine: its processor, how many of them, its GPUs.
[[nodiscard]] std::string machine_html(const Document& document);
/// True if both name the same processor, number of processors and GPUs: then their speeds may be compared.
[[nodiscard]] bool same_machine(const Document& a, const Document& b);

/// True for keys that the head of a document tells, so that its body leaves them out.
[[nodiscard]] bool is_head_key(std::string_view key);

}  // namespace warpline::page
