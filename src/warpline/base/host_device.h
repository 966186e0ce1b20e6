// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Marks a function that runs on the host and, when nvcc compiles it, on the device too.
#if defined(__CUDACC__)
#define WARPLINE_HD __host__ __device__
#else
#define WARPLINE_HD
#endif
