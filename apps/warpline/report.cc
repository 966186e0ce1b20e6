// SPDX-License-Identifier: Apache-2.0
// `warpline report`: results of runs and benchmarks as one page for a browser. It needs neither DPDK nor privileges.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "commands.h"
#include "page/page.h"
#include "warpline/base/files/read_file.h"

namespace warpline {
namespace {

Error cannot_read(const std::string& path, const std::string& why) {
  return usage_error(fmt::format("cannot read '{}'", path), why, "name a file that is there and that you may read");
}

/// The page takes the place of what is there: of no file that it is drawn from.
Result<void> keep_inputs(const config::ReportConfig& settings) {
  for (const std::string& path : settings.files) {
    std::error_code error;
    if (!std::filesystem::equivalent(path, settings.html, error)) continue;
    return usage_error(fmt::format("cannot write '{}'", settings.html), "it is one of the files to be drawn",
                       "give --html another name");
  }
  return {};
}

Result<std::string> read_whole(const std::string& path) {
  FileText file = read_file(path);
  if (file.problem == EISDIR) return cannot_read(path, "it is a folder");
  if (file.problem != 0) return cannot_read(path, std::generic_category().message(file.problem));
  return std::move(file.text);
}

/// Writes beside the file and then puts it in its place, so that a page is whole or not there. What is no regular file,
/// such as a pipe, is written to.
Result<void> write_whole(const std::string& path, const std::string& text) {
  const auto fail = [&](int why) {
    return usage_error(fmt::format("cannot write '{}'", path), std::generic_category().message(why),
                       "give --html a file in a folder that is there and that you may write to");
  };
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (std::filesystem::is_directory(status)) return fail(EISDIR);
  const bool beside = !std::filesystem::exists(status) || std::filesystem::is_regular_file(status);
  const std::string target = beside ? path + ".part" : path;
  errno = 0;
  std::FILE* file = std::fopen(target.c_str(), "wb");
  if (file == nullptr) return fail(errno);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool closed = std::fclose(file) == 0;
  int why = written && closed ? 0 : errno;
  if (why == 0 && beside && std::rename(target.c_str(), path.c_str()) != 0) why = errno;
  if (why == 0) return {};
  if (beside) std::remove(target.c_str());
  return fail(why);
}

}  // namespace

Result<int> run_report(const config::LoadedConfig& loaded) {
  const config::ReportConfig& settings = loaded.config.report;
  WARPLINE_CHECK(keep_inputs(settings));
  std::vector<page::Document> documents;
  for (const std::string& path : settings.files) {
    WARPLINE_TRY(const std::string text, read_whole(path));
    WARPLINE_TRY(page::Document document, page::read_document(text, path));
    documents.push_back(std::move(document));
  }
  const std::string html = page::page(documents);
  WARPLINE_CHECK(write_whole(settings.html, html));
  if (!loaded.json) {
    fmt::print("{}: {} {}\n", settings.html, documents.size(), documents.size() == 1 ? "result" : "results");
    return 0;
  }
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < documents.size(); ++i) {
    results.push_back({{"file", settings.files[i]}, {"title", documents[i].title}, {"id", documents[i].id}});
  }
  const nlohmann::ordered_json summary = {{"schema_version", 1},
                                          {"command", "report"},
                                          {"html", settings.html},
                                          {"bytes", html.size()},
                                          {"results", results}};
  fmt::print("{}\n", summary.dump(2));
  return 0;
}

}  // namespace warpline
