// SPDX-License-Identifier: Apache-2.0
#include "vnic/common/log.h"

#include <cstdarg>
#include <cstdint>
#include <cstdio>

#include <rte_common.h>
#include <rte_log.h>

namespace warpline::vnic {
namespace {

int log_type = RTE_LOGTYPE_EAL;  // until registered; newer DPDKs have none for all drivers

RTE_INIT(register_log_type) {
  const int type = rte_log_register_type_and_pick_level("pmd.net.vnic", RTE_LOG_NOTICE);
  if (type >= 0) log_type = type;
}

void log_line(std::uint32_t level, const char* format, va_list arguments) {
  char line[512];
  std::vsnprintf(line, sizeof line, format, arguments);
  // What a user typed may hold anything.
  for (char* letter = line; *letter != '\0'; ++letter) {
    if (static_cast<unsigned char>(*letter) < ' ') *letter = '?';
  }
  rte_log(level, static_cast<std::uint32_t>(log_type), "net_vnic: %s\n", line);
}

}  // namespace

void log_error(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  log_line(RTE_LOG_ERR, format, arguments);
  va_end(arguments);
}

void log_notice(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  log_line(RTE_LOG_NOTICE, format, arguments);
  va_end(arguments);
}

}  // namespace warpline::vnic
