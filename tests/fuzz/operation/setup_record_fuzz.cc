// SPDX-License-Identifier: Apache-2.0
// What `setup --undo` reads: the record of what was there before.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "setup/record.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace warpline;
  const auto record = setup::parse_record(std::string(reinterpret_cast<const char*>(data), size));
  if (!record) return 0;
  // What was read once is read again, the same.
  const auto again = setup::parse_record(setup::to_text(*record));
  if (!again || *again != *record) std::abort();
  return 0;
}
