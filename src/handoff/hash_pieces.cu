// SPDX-License-Identifier: Apache-2.0
#include "handoff/device_work.cuh"
#include "handoff/hash_pieces.h"

WARPLINE_DEVICE_WORK(warpline::HashPieces);
