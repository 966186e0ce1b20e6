// SPDX-License-Identifier: Apache-2.0
// Stands in for a profiler: NVTX loads it (NVTX_INJECTION64_PATH) and calls it for each range. Where the program ends,
// writes one line a name to the file NVTX_RANGES names: name, how often it began, how deep it lay at most; and how many
// ranges did not end.
#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

namespace {

struct Range {
  std::uint64_t began = 0;
  int deepest = 0;
};

std::mutex mutex;
std::map<std::string, Range> ranges;
std::int64_t open_ranges = 0;
thread_local int depth = 0;

int push(const char* name) {
  const std::lock_guard lock(mutex);
  Range& range = ranges[name];
  ++range.began;
  range.deepest = std::max(range.deepest, ++depth);
  ++open_ranges;
  return depth - 1;
}

int pop() {
  const std::lock_guard lock(mutex);
  --open_ranges;
  return --depth;
}

void write_ranges() {
  const char* const path = std::getenv("NVTX_RANGES");
  std::FILE* const file = path != nullptr ? std::fopen(path, "w") : nullptr;
  if (file == nullptr) return;
  for (const auto& [name, range] : ranges) {
    std::fprintf(file, "%s %llu %d\n", name.c_str(), static_cast<unsigned long long>(range.began), range.deepest);
  }
  std::fprintf(file, "open %lld 0\n", static_cast<long long>(open_ranges));
  std::fclose(file);
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the name that NVTX looks for
extern "C" int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table) {
  const auto* const callbacks = static_cast<const NvtxExportTableCallbacks*>(get_export_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr || callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size) == 0) return 0;
  if (size <= NVTX_CBID_CORE_RangePop) return 0;
  *table[NVTX_CBID_CORE_RangePushA] = reinterpret_cast<NvtxFunctionPointer>(push);
  *table[NVTX_CBID_CORE_RangePop] = reinterpret_cast<NvtxFunctionPointer>(pop);
  std::atexit(write_ranges);
  return 1;
}
