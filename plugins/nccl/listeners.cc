// SPDX-License-Identifier: Apache-2.0
#include "nccl/listeners.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "warpline/base/secrets/draw_secret.h"

namespace warpline::nccl {
namespace {

/// In a time that does not tell where they differ.
bool same(const ConnectionSecret& a, const ConnectionSecret& b) {
  unsigned differ = 0;
  for (std::size_t i = 0; i < a.size(); ++i) differ |= static_cast<unsigned>(a[i] ^ b[i]);
  return differ == 0;
}

}  // namespace

Path* Listeners::join(Lane& lane, const message::PeerAddress& from, std::span<const std::uint8_t> message) {
  const auto join = read_join(message);
  if (!join) return nullptr;
  const std::lock_guard lock(mutex_);
  const auto found = listeners_.find(join->listener);
  if (found == listeners_.end() || !same(found->second->secret, join->secret)) return nullptr;
  Listener& listener = *found->second;
  if (join->paths > listener.lanes.size() || listener.lanes[join->path] != &lane) return nullptr;
  const auto is_it = [&](const Listener::Coming& one) { return one.name == join->connection; };
  auto coming = std::find_if(listener.coming.begin(), listener.coming.end(), is_it);
  if (coming == listener.coming.end()) {
    if (listener.coming.size() >= listener.max_waiting) return nullptr;
    listener.coming.push_back({join->connection, 0, nullptr});
    coming = std::prev(listener.coming.end());
    coming->connection = std::make_unique<ReceiveConnection>(
        fmt::format("{} port {}", to_string(message::ip_address(from)), from.port), listener.keeps,
        std::span(listener.lanes).first(join->paths), join->piece_bytes, join->home, listener.early_bytes);
  }
  const std::uint32_t bit = 1U << join->path;
  if (join->paths != coming->connection->paths().size() || (coming->joined & bit) != 0) return nullptr;
  coming->joined |= bit;
  coming->connection->join();
  return coming->connection->paths()[join->path].get();
}

Result<Listener*> Listeners::add(std::unique_ptr<Listener> listener) {
  WARPLINE_CHECK(draw_secret(listener->secret));
  const std::lock_guard lock(mutex_);
  listener->id = ++last_;
  Listener* const added = listener.get();
  listeners_[added->id] = std::move(listener);
  return added;
}

std::unique_ptr<ReceiveConnection> Listeners::accept(Listener& listener) {
  std::unique_ptr<ReceiveConnection> accepted;
  std::vector<std::unique_ptr<ReceiveConnection>> failed;
  {
    const std::lock_guard lock(mutex_);
    for (auto it = listener.coming.begin(); it != listener.coming.end() && !accepted;) {
      if (it->connection->joined()) {
        accepted = std::move(it->connection);
      } else if (it->connection->failed()) {
        failed.push_back(std::move(it->connection));
      } else {
        ++it;
        continue;
      }
      it = listener.coming.erase(it);
    }
  }
  for (const auto& one : failed) one->close();  // without the lock, which lanes take
  return accepted;
}

void Listeners::remove(Listener& listener) {
  std::unique_ptr<Listener> last;
  {
    const std::lock_guard lock(mutex_);
    const auto found = listeners_.find(listener.id);
    if (found == listeners_.end()) return;
    last = std::move(found->second);
    listeners_.erase(found);
  }
  for (const auto& coming : last->coming) coming.connection->close();
}

}  // namespace warpline::nccl
