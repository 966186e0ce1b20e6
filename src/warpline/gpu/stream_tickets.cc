// SPDX-License-Identifier: Apache-2.0
#include "warpline/gpu/stream_tickets.h"

#include "warpline/gpu/device.h"

namespace warpline::gpu {

Result<std::unique_ptr<StreamTickets>> StreamTickets::create() {
  WARPLINE_CHECK(CudaStream::check_words());
  WARPLINE_TRY(PinnedBuffer done, PinnedBuffer::create(Bytes{sizeof(std::uint64_t)}));
  WARPLINE_TRY(CudaStream stream, CudaStream::create());
  WARPLINE_TRY(CudaEvent event, CudaEvent::create());
  return std::unique_ptr<StreamTickets>(
      new StreamTickets(context_here(), std::move(done), std::move(stream), std::move(event)));
}

StreamTickets::~StreamTickets() {
  if (!gpus_abandoned()) (void)stream_.wait(CudaStream::kNoTimeout);
}

bool StreamTickets::wait_for(CUstream_st* stream) {
  const std::scoped_lock lock(mutex_);
  const UseContext here(context_);  // a default stream is that of the thread's GPU
  return event_.record(stream) && event_.hold_back(stream_);
}

std::uint64_t StreamTickets::draw() {
  const std::scoped_lock lock(mutex_);
  const UseContext here(context_);
  return stream_.queue_word(word(), drawn_ + 1) ? ++drawn_ : kNever;
}

}  // namespace warpline::gpu
