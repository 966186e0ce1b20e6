// SPDX-License-Identifier: Apache-2.0
// `warpline selftest`: what two ports, and perhaps a GPU, can do, each step a child that is this program.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "bench/child_run.h"
#include "commands.h"
#include "page/page.h"
#include "selftest/interfaces.h"
#include "selftest/selftest_run.h"
#include "warpline/base/files/read_file.h"
#include "warpline/base/output.h"
#include "warpline/base/time/progress_lines.h"
#include "warpline/gpu/device.h"
#include "warpline/report/facts.h"
#include "warpline/report/live.h"
#include "warpline/runtime/stop.h"

namespace warpline {
namespace {

namespace fs = std::filesystem;
using selftest::Kept;

/// The files of a self-test, in a folder of its own.
class Files {
 public:
  explicit Files(const std::string& folder) : folder_(folder) {}

  Result<void> make_folder() const {
    std::error_code error;
    fs::create_directories(folder_, error);
    if (error) return cannot_write(folder_, error.message());
    return {};
  }
  [[nodiscard]] fs::path json() const { return folder_ / "selftest.json"; }
  [[nodiscard]] fs::path html() const { return folder_ / "selftest.html"; }
  [[nodiscard]] fs::path toml() const { return folder_ / "best.toml"; }

  /// A file is whole or as it was.
  static Result<void> write(const fs::path& path, const std::string& text) {
    const fs::path part = path.string() + ".part";
    errno = 0;
    std::ofstream file(part, std::ios::binary);
    file << text;
    file.close();
    if (!file) return cannot_write(path, std::generic_category().message(errno));
    std::error_code error;
    fs::rename(part, path, error);
    if (error) return cannot_write(path, error.message());
    return {};
  }
  static std::string read(const fs::path& path) { return read_file(path).text; }

 private:
  static Error cannot_write(const fs::path& path, std::string why) {
    return usage_error(fmt::format("cannot write '{}'", path.string()), std::move(why),
                       "give --output a folder that you may write to");
  }

  fs::path folder_;
};

Result<void> write_page(const Files& files, const std::string& json) {
  std::vector<page::Document> documents;
  WARPLINE_TRY(page::Document document, page::read_document(json, files.json().string()));
  documents.push_back(std::move(document));
  return Files::write(files.html(), page::page(documents));
}

/// Says what is done, step by step. What is not done is in the report, with the cause that was said already.
void tell(const selftest::StepResult& result) {
  if (result.outcome == selftest::Outcome::skipped) return;
  put_line(stderr,
           fmt::format("selftest: {} {}: {} ({:.1f} s){}{}", warpline::name(result.stage), result.name,
                       warpline::name(result.outcome), result.seconds, result.why.empty() ? "" : ": ", result.why));
}

std::string why_no_gpu(std::uint16_t ordinal) {
  const auto gpu = gpu::find_gpu(ordinal);
  return gpu ? "" : gpu.error().message();
}

}  // namespace

Result<int> run_selftest(const config::LoadedConfig& loaded) {
  const config::SelftestConfig& settings = loaded.config.selftest;
  const runtime::StopOnSignal on_signal;
  const std::atomic<bool>& stop = runtime::StopOnSignal::requested();
  const selftest::Json build = report::build_facts(), host = report::host_facts();
  const selftest::Subject subject{.ports = settings.ports,
                                  .gpu = settings.gpu,
                                  .mtu = settings.mtu,
                                  .quick = settings.quick,
                                  .hugepages = loaded.config.runtime.hugepages};
  const Files files(settings.output);
  WARPLINE_CHECK(files.make_folder());

  const auto version = build.at("version").get<std::string>();
  Kept kept{.subject = subject, .version = version, .results = {}, .best = {}, .seconds = 0};
  if (auto before = settings.again ? std::nullopt : selftest::unfinished(Files::read(files.json()), subject, version)) {
    put_line(stderr,
             fmt::format("selftest: going on behind {} steps of {}", before->results.size(), files.json().string()));
    kept = *std::move(before);
  }
  // What a program wrote before it crashed may be no UTF-8.
  const auto text_of = [&] {
    return selftest::kept_json(kept, {{"build", build}, {"host", host}})
               .dump(1, ' ', false, selftest::Json::error_handler_t::replace) +
           "\n";
  };
  const selftest::KernelState state = selftest::kernel_state(subject.ports);
  ProgressLines parts("selftest", 0);
  const selftest::Hooks hooks{
      .run = [&](const std::vector<std::string>& arguments,
                 Nanos limit) { return bench::run_child(bench::kThisProgram, arguments, limit, &stop); },
      .no_gpu = [&] { return why_no_gpu(*subject.gpu); },
      .stopped = [&] { return stop.load(); },
      .progress =
          [&](const selftest::StepResult& result, std::size_t left) {
            parts.clear();
            tell(result);
            parts.expect(left + 1);
            parts.step();
          },
      .keep = [&](const Kept&) { return Files::write(files.json(), text_of()); },
      .seconds = report::monotonic_seconds};
  const Result<void> done = selftest::run_selftest(kept, hooks);
  parts.clear();
  kept.results.push_back(selftest::put_back(state, subject.ports));
  tell(kept.results.back());
  WARPLINE_CHECK(done);

  const std::string json = text_of();
  WARPLINE_CHECK(Files::write(files.json(), json));
  WARPLINE_CHECK(write_page(files, json));
  if (kept.best) WARPLINE_CHECK(Files::write(files.toml(), selftest::to_toml(subject, *kept.best)));
  if (loaded.json) {
    fmt::print("{}", json);
  } else {
    fmt::print("{}{}, {}{}\n", selftest::to_text(kept), files.json().string(), files.html().string(),
               kept.best ? ", " + files.toml().string() : "");
  }
  if (stop.load()) {
    put_line(stderr, "selftest: the same command goes on behind the last step");
    return kInterrupted;
  }
  if (const selftest::StepResult* link = selftest::no_link(kept)) {
    put_line(stderr, fmt::format("warpline: nothing more can be tested: {}: {}", link->name, link->why));
  }
  return selftest::exit_code(kept);
}

}  // namespace warpline
