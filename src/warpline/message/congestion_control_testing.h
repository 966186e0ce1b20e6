// SPDX-License-Identifier: Apache-2.0
// The congestion controllers alone, for tests outside of the module.
#pragma once

#include "warpline/message/internal/cc/congestion_control.h"
