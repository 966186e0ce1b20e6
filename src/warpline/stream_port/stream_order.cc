// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream_port/stream_order.h"

#include "warpline/gpu/cuda_stream.h"

namespace warpline::stream_port {
namespace {

/// As StreamBoard::tell(); each write waits until the one before is seen.
bool tell_behind(CUstream_st* stream, const stream::StreamBoard& board, std::uint32_t place, stream::ReleaseWord word) {
  using gpu::CudaStream;
  return CudaStream::queue_word(stream, &board.released[place], word.value()) &&
         CudaStream::queue_word(stream, &board.groups[place / stream::StreamBoard::kGroup], 1) &&
         CudaStream::queue_word(stream, board.changed, 1);
}

}  // namespace

bool wait_for_bytes(CUstream_st* stream, const stream::StreamBoard& board, stream::ConnectionId connection,
                    std::uint64_t bytes) {
  // An end is beyond any number of bytes.
  return gpu::CudaStream::queue_wait(stream, &board.places[connection.index].reach, bytes);
}

bool release_behind(CUstream_st* stream, const stream::StreamBoard& board, stream::ConnectionId connection,
                    std::uint64_t bytes) {
  return tell_behind(stream, board, connection.index, {connection.generation, bytes, false});
}

bool finish_behind(CUstream_st* stream, const stream::StreamBoard& board, stream::ConnectionId connection,
                   std::uint64_t bytes) {
  return tell_behind(stream, board, connection.index, {connection.generation, bytes, true});
}

Result<void> check_stream_order() { return gpu::CudaStream::check_words(); }

}  // namespace warpline::stream_port
