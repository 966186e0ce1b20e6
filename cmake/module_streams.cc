// SPDX-License-Identifier: Apache-2.0
// stdin, stdout and stderr for archives that were compiled for programs, in a module (static_libraries.cmake).
#include <cstdio>

#define WARPLINE_HIDDEN __attribute__((visibility("hidden")))

extern "C" {
WARPLINE_HIDDEN FILE* warpline_module_stdin = stdin;
WARPLINE_HIDDEN FILE* warpline_module_stdout = stdout;
WARPLINE_HIDDEN FILE* warpline_module_stderr = stderr;
}
