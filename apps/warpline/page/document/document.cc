// SPDX-License-Identifier: Apache-2.0
#include "page/document/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "page/document/shape.h"
#include "page/text/markup.h"
#include "page/text/names.h"

namespace warpline::page {
namespace {

/// All that goes through a document calls itself once a level.
constexpr int kDeepest = 64;

/// The `schema_version` that all of it is about.
constexpr int kSchema = 1;

constexpr std::string_view kMachineKeys[] = {"host", "gpus", "gpu", "build", "context"};
constexpr std::string_view kHeadKeys[] = {"benchmark", "command",        "command_line", "date",
                                          "commit",    "modified",       "units",        "unit",
                                          "title",     "schema_version", "question"};

/// Titles of the benchmarks whose results do not bring one.
constexpr std::pair<std::string_view, std::string_view> kTitles[] = {
    {"forward_vs_testpmd", "Forwarding on one core, against dpdk-testpmd"},
    {"gpu", "Forwarding through a GPU, against the CPU"},
    {"inline_cost", "What GPU support costs where it is not used"},
    {"kv", "Keys and values, against Redis"},
    {"l3forward", "Routing, against forwarding and lookup apart"},
    {"matrix", "Every combination of options works or is refused"},
    {"message", "Messages, against raw bursts and the kernel"},
    {"message_gpu", "Messages from and into GPU memory"},
    {"message_one_core", "Messages with both ends on one core"},
    {"message_peers", "Requests, against gRPC C++ and the kernel's TCP"},
    {"recycle", "How the buffers of sent packets come back"},
    {"sanitize", "Kernels under compute-sanitizer"},
    {"transmit", "Making a frame and sending it"},
    {"vnic", "What the software NIC costs"},
};

std::string title_of(const std::string& benchmark) {
  const auto found = std::ranges::find(kTitles, benchmark, [](const auto& entry) { return entry.first; });
  return found == std::end(kTitles) ? words(benchmark) : std::string(found->second);
}

/// Brackets outside of strings: the parser has said that the text is JSON, so they match.
bool is_too_deep(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
      continue;
    }
    if (c == '"') quoted = true;
    if ((c == '{' || c == '[') && ++depth > kDeepest) return true;
    if (c == '}' || c == ']') --depth;
  }
  return false;
}

Error cannot_draw(const std::string& path, std::string why) {
  return usage_error(fmt::format("cannot draw '{}'", path), std::move(why),
                     "give it what bench/*/run or a command with --json wrote");
}

std::string file_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

bool is_google_benchmark(const Json& json) {
  const Json *context = member(json, "context"), *runs = member(json, "benchmarks");
  return context != nullptr && context->is_object() && runs != nullptr && runs->is_array();
}

/// Fills in what the head says, by who wrote the file. False for a stranger's.
bool describe(Document& document) {
  const Json& json = document.json;
  document.date = string_member(json, "date");
  document.commit = string_member(json, "commit");
  document.command = string_member(json, "command");
  if (const Json* modified = member(json, "modified")) document.modified = *modified == true;
  const std::string title = string_member(json, "title");
  if (const std::string benchmark = string_member(json, "benchmark"); !benchmark.empty()) {
    document.subject = benchmark;
    document.title = title.empty() ? title_of(benchmark) : title;
    return true;
  }
  if (is_google_benchmark(json)) {
    const Json& context = json.at("context");
    document.date = string_member(context, "date");
    document.command = string_member(context, "executable");
    document.subject = file_name(document.command);
    document.title = "micro-benchmarks: " + words(document.subject);
    return true;
  }
  const Json* version = member(json, "schema_version");
  if (version == nullptr || !version->is_number() || document.command.empty()) return false;
  document.subject = "warpline " + document.command;
  const Json* table = member(json, "table");
  if (table != nullptr) document.subject += " " + string_member(*table, "name");
  document.title = table == nullptr ? document.subject : document.subject + ": " + string_member(*table, "title");
  // A run's report is a configuration; only a table has another command line.
  const bool repeats = table == nullptr && member(json, "config") != nullptr;
  document.command = string_member(json, "command_line");
  if (document.command.empty() && repeats) {
    document.command = fmt::format("{} --config {} --json", document.subject, document.name);
  }
  return true;
}

/// The members that say which machine it was, without what changes from run to run.
Json identity(const Document& document) {
  Json result = Json::array();
  const Json* host = member(document.json, "host");
  for (const char* key : {"cpu", "cpus"}) {
    const Json* value = host == nullptr ? nullptr : member(*host, key);
    result.push_back(value == nullptr ? Json() : *value);
  }
  if (const Json* gpus = member(document.json, "gpus"); gpus != nullptr && gpus->is_array()) {
    for (const Json& gpu : *gpus) result.push_back(string_member(gpu, "name"));
  }
  if (const Json* gpu = member(document.json, "gpu")) result.push_back(string_member(*gpu, "name"));
  return result;
}

}  // namespace

Result<Document> read_document(std::string_view text, const std::string& path) {
  if (is_too_deep(text)) return cannot_draw(path, fmt::format("it is nested deeper than {} levels", kDeepest));
  Document document;
  document.json = Json::parse(text, nullptr, false);
  if (document.json.is_discarded()) return cannot_draw(path, "it is not JSON");
  document.name = file_name(path);
  if (!document.json.is_object() || !describe(document)) {
    return cannot_draw(path, "it is JSON, but no result of Warpline: it has neither 'benchmark' nor 'schema_version'");
  }
  if (const Json* version = member(document.json, "schema_version"); version != nullptr && *version != kSchema) {
    return cannot_draw(path,
                       fmt::format("its 'schema_version' is {}, and this program knows {}", version->dump(), kSchema));
  }
  return document;
}

Json machine_facts(const Document& document) {
  Json facts = Json::object();
  for (const std::string_view key : kMachineKeys) {
    const Json* value = member(document.json, key);
    if (value != nullptr) facts[std::string(key)] = *value;
  }
  return facts;
}

std::string machine_html(const Document& document) {
  const Json* host = member(document.json, "host");
  std::string text = host == nullptr ? "" : escape(string_member(*host, "cpu"));
  const Json* cpus = host == nullptr ? nullptr : member(*host, "cpus");
  if (cpus != nullptr && cpus->is_number()) text += ", " + data(*cpus) + " CPUs";
  if (const Json* gpus = member(document.json, "gpus"); gpus != nullptr && is_object_array(*gpus)) {
    for (const Json& gpu : *gpus) text += ", " + escape(string_member(gpu, "name"));
  }
  if (const Json* gpu = member(document.json, "gpu")) {
    if (const std::string name = string_member(*gpu, "name"); !name.empty()) text += ", " + escape(name);
  }
  return text;
}

bool same_machine(const Document& a, const Document& b) { return identity(a) == identity(b); }

bool is_head_key(std::string_view key) { return is_among(key, kHeadKeys) || is_among(key, kMachineKeys); }

}  // namespace warpline::page
