// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "warpline/gpu/trace.h"
#include "warpline/handoff/next_launcher.h"

namespace warpline::handoff {

Result<NextLauncher> NextLauncher::create(EngineKind kind, const EngineView& view, std::uint64_t deadline_ticks,
                                          const std::function<gpu::KernelLaunch(unsigned)>& kernel_of) {
  NextLauncher launcher(view, deadline_ticks);
  for (unsigned i = 0; i < kStreams; ++i) {
    WARPLINE_TRY(gpu::CudaStream stream, gpu::CudaStream::create());
    launcher.streams_.push_back(std::move(stream));
  }
  if (kind == EngineKind::launch) launcher.single_.push_back(kernel_of(1));
  if (kind == EngineKind::graph) launcher.graphs_.resize(kStreams);
  for (std::vector<gpu::LaunchGraph>& graphs : launcher.graphs_) {
    for (unsigned bursts = 1; bursts <= kGraphBursts; ++bursts) {
      WARPLINE_TRY(gpu::LaunchGraph graph, gpu::LaunchGraph::create(kernel_of(bursts)));
      graphs.push_back(std::move(graph));
    }
  }
  return launcher;
}

bool NextLauncher::launch(std::uint64_t published, std::uint64_t now, bool hurry) {
  for (; !single_.empty() && launched_ < published; ++launched_) {
    const gpu::TraceRange range("engine");
    if (!single_.front()(streams_[next_turn()])) return false;
  }
  while (published - launched_ >= kGraphBursts) {
    if (!launch_graph(kGraphBursts)) return false;
  }
  if (launched_ == published) return true;
  if (waiting_since_ == 0) waiting_since_ = now;
  const bool due = hurry || now - waiting_since_ >= deadline_ || last_is_done();
  return !due || launch_graph(published - launched_);
}

bool NextLauncher::launch_graph(std::uint64_t bursts) {
  const gpu::TraceRange range("engine");
  waiting_since_ = 0;
  launched_ += bursts;
  const unsigned turn = next_turn();
  return graphs_[turn][bursts - 1](streams_[turn]);
}

bool NextLauncher::last_is_done() const {
  return launched_ == 0 || view_.is_done(view_.first_sequence + launched_ - 1);
}

gpu::CudaStream::State NextLauncher::query() const {
  gpu::CudaStream::State sum = gpu::CudaStream::State::idle;
  for (const gpu::CudaStream& stream : streams_) sum = std::max(sum, stream.query());
  return sum;
}

std::optional<Error> NextLauncher::failure() const {
  for (const gpu::CudaStream& stream : streams_) {
    if (std::optional<Error> error = stream.failure()) return error;
  }
  return std::nullopt;
}

}  // namespace warpline::handoff
