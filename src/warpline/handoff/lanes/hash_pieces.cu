// SPDX-License-Identifier: Apache-2.0
#include "warpline/handoff/device_work.cuh"
#include "warpline/handoff/lanes/hash_pieces.h"

WARPLINE_DEVICE_WORK(warpline::handoff::HashPieces);
