// SPDX-License-Identifier: Apache-2.0
// The kernels of every workload that `forward` knows.
#include "warpline/handoff/device_work.cuh"
#include "warpline/handoff/queues/queue_work.cuh"
#include "warpline/workload/with_workload.h"

namespace warpline {

using namespace workload;  // the list names functors as that room does

#define WARPLINE_KERNELS(enumerator, name, functor) \
  WARPLINE_DEVICE_WORK(LimitedWork<functor>);       \
  WARPLINE_DEVICE_QUEUE_WORK(LimitedWork<functor>);
WARPLINE_WORKLOADS(WARPLINE_KERNELS)
#undef WARPLINE_KERNELS

}  // namespace warpline
