// SPDX-License-Identifier: Apache-2.0
// Device arguments and run-time faults of any bytes: refused with a negative errno, or read; faults that are read and
// printed are read back the same.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include <rte_log.h>

#include "vnic/args/devargs.h"
#include "vnic/args/fault_args.h"
#include "vnic/sources/source.h"

namespace warpline::vnic {
namespace {

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::abort();
}

void read_back(const FaultConfig& config) {
  FaultConfig again;
  const std::string text = to_string(config);
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view pair = rest.substr(0, rest.find(','));
    rest.remove_prefix(pair.size() < rest.size() ? pair.size() + 1 : pair.size());
    const std::size_t equals = pair.find('=');
    if (const auto set = set_fault(again, pair.substr(0, equals), pair.substr(equals + 1)); !set.ok()) {
      fail(text + ": " + set.error().message());
    }
  }
  if (!(again == config)) fail("changed on the way: " + text + " and " + to_string(again));
}

void run(const std::string& text) {
  Devargs args;
  const Devargs before;
  const int status = parse_devargs(text.c_str(), args);
  if (status > 0) fail("a positive errno");
  if (status != 0) {
    if (args.seed != before.seed || args.wire != before.wire || args.faults.any()) fail("half taken: " + text);
    return;
  }
  if (args.queues == 0 || args.queues > 32 || args.size < Devargs::kMinSize || args.size > Devargs::kMaxSize) {
    fail("out of its bounds: " + text);
  }
  read_back(args.faults);
  if (args.wire == WireKind::source && args.pcap.empty()) {
    int error = 0;
    std::string problem;
    if (Source::open(args, error, problem) == nullptr) fail("no source after all: " + problem);
  }
}

}  // namespace
}  // namespace warpline::vnic

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  rte_log_set_global_level(RTE_LOG_EMERG);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  warpline::vnic::run({reinterpret_cast<const char*>(data), size});
  return 0;
}
