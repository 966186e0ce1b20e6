// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/result.h"
#include "warpline/stream/lanes/stream_board.h"

struct CUstream_st;

namespace warpline::stream_port {

// Consumers in the order of a CUDA stream, for kernels that know nothing of boards: they are put behind a wait, and
// their bytes are released behind them. For the boards of lanes on the stream's GPU; the stream is a cudaStream_t of
// whoever owns it. Calls do not wait; false when CUDA refuses.
//
// A stream that waits keeps a hardware queue of the GPU to itself, of which there are as many as the environment's
// CUDA_DEVICE_MAX_CONNECTIONS says (8 unless set): what other streams have there waits, too. A lane of the engine
// `launch` may stand there; one that is `persistent` does not. A wait for bytes that never come is over when the
// connection has ended: whoever stops closes it, and has collect() take that to the lane.

/// What is put on the stream from now on waits until `bytes` of the connection's stream have come, from its beginning,
/// or it has ended: the work looks at StreamReader::reach() if that makes a difference. The connection is not finished.
[[nodiscard]] bool wait_for_bytes(CUstream_st* stream, const stream::StreamBoard& board,
                                  stream::ConnectionId connection, std::uint64_t bytes);
/// The first `bytes` of the connection's stream are released when all that was put on the stream before has been done:
/// as StreamReader::release(), but for the number, which counts from the stream's beginning.
[[nodiscard]] bool release_behind(CUstream_st* stream, const stream::StreamBoard& board,
                                  stream::ConnectionId connection, std::uint64_t bytes);
/// The same, and the consumer is through with the connection: as StreamReader::finish().
[[nodiscard]] bool finish_behind(CUstream_st* stream, const stream::StreamBoard& board, stream::ConnectionId connection,
                                 std::uint64_t bytes);
/// An environment error where the driver cannot do that.
[[nodiscard]] Result<void> check_stream_order();

}  // namespace warpline::stream_port
