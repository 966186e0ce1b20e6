// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "commands.h"
#include "config/help.h"
#include "config/load.h"
#include "warpline/base/output.h"
#include "warpline/report/facts.h"

namespace warpline {
namespace {

/// Stdout is for data. One line a message, so that scripts can take stderr apart.
void log_to_stderr() {
  spdlog::set_default_logger(spdlog::stderr_logger_mt("warpline"));
  spdlog::set_pattern("%n: %v");
}

Result<int> run(const std::vector<std::string>& arguments) {
  if (const auto text = config::requested_text(arguments, report::build_facts().at("version").get<std::string>())) {
    fmt::print("{}", *text);
    return 0;
  }
  WARPLINE_TRY(const config::LoadedConfig loaded,
               config::load(arguments, config::process_environment(), config::read_text_file));
  // There is no default, so the compiler refuses a command without a case.
  switch (loaded.command) {
    case config::Command::forward:
      return run_forward(loaded);
    case config::Command::l3forward:
      return run_l3forward(loaded);
    case config::Command::ingest:
      return run_ingest(loaded);
    case config::Command::generate:
      return run_generate(loaded);
    case config::Command::message:
      return loaded.config.role == config::Role::daemon ? run_message_daemon(loaded) : run_message(loaded);
    case config::Command::message_key:
      return run_message_key(loaded);
    case config::Command::stream:
      return loaded.config.role == config::Role::send ? run_stream_send(loaded) : run_stream(loaded);
    case config::Command::bench:
      return run_bench(loaded);
    case config::Command::report:
      return run_report(loaded);
    case config::Command::config:
      return run_config(loaded);
    case config::Command::doctor:
      return run_doctor(loaded);
    case config::Command::selftest:
      return run_selftest(loaded);
    case config::Command::ctl:
      return run_ctl(loaded);
    case config::Command::top:
      return run_top(loaded);
    case config::Command::capture:
      return run_capture(loaded);
    case config::Command::trace:
      return run_trace(loaded);
    case config::Command::setup:
      return run_setup(loaded);
  }
  __builtin_unreachable();  // load() knows no other
}

/// The exit code of a command that ended so.
int code_of(const Result<int>& result) {
  if (result) return *result;
  spdlog::error("{}", result.error().message());
  return static_cast<int>(result.error().kind);
}

/// Returns how to fix what an exception reports. None of ours throws once set-up is over; the standard library does
/// where memory, threads or rights are short.
std::string fix_of(const std::exception& exception) {
  const auto* const system = dynamic_cast<const std::system_error*>(&exception);
  if (dynamic_cast<const std::bad_alloc*>(&exception) != nullptr) return "free some memory and try again";
  if (system == nullptr) return "this is a defect of the program: report it with this line";
  const std::error_condition why = system->code().default_error_condition();
  if (why == std::errc::operation_not_permitted || why == std::errc::permission_denied) {
    return "the seccomp profile of the container, or a security module, refuses a system call: allow it there, or use "
           "a "
           "newer container runtime";
  }
  if (why == std::errc::resource_unavailable_try_again) {
    return "no thread can be made: raise `ulimit -u`, or the container's limit of processes";
  }
  return why == std::errc::not_enough_memory ? "free some memory and try again"
                                             : "see what the system's error says, and try again";
}

/// Ends the output. What its reader did not get turns success, and an interrupt, into an error.
int end_output(int code) {
  flush_output(stdout);
  if (std::ferror(stdout) == 0) return code;
  const std::string why =
      stdout_error == 0 ? "a write in the course of the run failed" : std::generic_category().message(stdout_error);
  spdlog::error("cannot write to stdout: {}; write to a file that has room, or keep the reader open to the end", why);
  return code == 0 || code == kInterrupted ? static_cast<int>(ErrorKind::environment) : code;
}

}  // namespace
}  // namespace warpline

int main(int argc, char** argv) {
  // A reader or peer that has left is an error of the write to it, here and in DPDK's drivers.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    warpline::log_to_stderr();
    const int code = warpline::code_of(warpline::run({argv + 1, argv + argc}));
    return warpline::end_output(code);
  } catch (const std::exception& exception) {  // of ours only prints to stdout throw
    if (std::ferror(stdout) != 0) {
      const auto* const refused = dynamic_cast<const std::system_error*>(&exception);
      if (warpline::stdout_error == 0 && refused != nullptr) warpline::stdout_error = refused->code().value();
      return warpline::end_output(0);
    }
    std::fprintf(stderr, "warpline: cannot go on: %s; %s\n", exception.what(), warpline::fix_of(exception).c_str());
    return static_cast<int>(warpline::ErrorKind::environment);
  }
}
