#include "app/engine/tile_store.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>
#include <utility>

namespace qkv {
namespace {

// A tile has at most so many blocks along a side, and covers about so many cells.
constexpr Index kMostBlocks = 256, kTileCells = 4096;

std::size_t bytes_of(const Matrix& matrix) { return static_cast<std::size_t>(matrix.size()) * sizeof(float); }

}  // namespace

std::strong_ordering TileKey::operator<=>(const TileKey& other) const {
  const auto order = [](const TileKey& key) {
    return std::tuple(key.id.kind, key.id.head, key.level, key.row, key.col);
  };
  return order(*this) <=> order(other);
}

Index tile_side(int level) { return std::clamp<Index>(kTileCells >> level, 1, kMostBlocks); }

Rect tile_cells(const TileKey& key, Index rows, Index cols) {
  const Index side = tile_side(key.level) << key.level;
  const Index row = key.row * side, col = key.col * side;
  return {row, col, std::min(side, rows - row), std::min(side, cols - col)};
}

struct TileStore::Impl {
  struct Held {
    std::shared_ptr<const Matrix> blocks;
    std::uint64_t used = 0;  // frame
  };
  struct Wanted {
    std::shared_ptr<const MatrixSource> source;
    TileKey key;
    Reduction how;
    std::uint64_t asked = 0;  // frame
  };

  std::function<void()> wake;
  std::size_t most_bytes;
  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  std::shared_ptr<const void> origin;
  std::uint64_t origin_number = 0;
  std::map<TileKey, Held> held;
  std::deque<Wanted> wanted;  // in the order in which they were asked for
  std::optional<TileKey> running;
  std::size_t bytes = 0;
  std::uint64_t frame = 1, computed = 0;
  bool quit = false;
  std::thread worker;

  static std::shared_ptr<const Matrix> compute(const Wanted& tile) {
    const Rect cells = tile_cells(tile.key, tile.source->rows(), tile.source->cols());
    const Index side = Index{1} << tile.key.level;
    Matrix blocks((cells.rows + side - 1) / side, (cells.cols + side - 1) / side);
    if (tile.key.level == 0) {
      tile.source->read(cells, blocks);
    } else {
      tile.source->reduce(cells, tile.key.level, tile.how, blocks);
    }
    return std::make_shared<const Matrix>(std::move(blocks));
  }

  void work() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] { return quit || !wanted.empty(); });
      if (quit) return;
      const Wanted tile = std::move(wanted.front());
      wanted.pop_front();
      running = tile.key;
      const std::uint64_t of = origin_number;
      lock.unlock();
      auto blocks = compute(tile);
      lock.lock();
      running.reset();
      if (of == origin_number) keep(tile.key, std::move(blocks));
      changed.notify_all();
      if (!wake) continue;
      lock.unlock();
      wake();
      lock.lock();
    }
  }

  void keep(const TileKey& key, std::shared_ptr<const Matrix> blocks) {
    bytes += bytes_of(*blocks);
    held[key] = {std::move(blocks), frame};
    ++computed;
    while (bytes > most_bytes) {
      const auto oldest = std::min_element(held.begin(), held.end(),
                                           [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
      if (oldest->second.used == frame) return;  // what is on screen stays
      bytes -= bytes_of(*oldest->second.blocks);
      held.erase(oldest);
    }
  }

  std::shared_ptr<const Matrix> look(const TileKey& key) {
    const auto at = held.find(key);
    if (at == held.end()) return nullptr;
    at->second.used = frame;
    return at->second.blocks;
  }
};

TileStore::TileStore(std::function<void()> wake, std::size_t most_bytes) : impl_(std::make_unique<Impl>()) {
  impl_->wake = std::move(wake);
  impl_->most_bytes = most_bytes;
}

TileStore::~TileStore() {
  {
    const std::scoped_lock lock(impl_->mutex);
    impl_->quit = true;
  }
  impl_->changed.notify_all();
  if (impl_->worker.joinable()) impl_->worker.join();
}

void TileStore::follow(std::shared_ptr<const void> origin) {
  const std::scoped_lock lock(impl_->mutex);
  if (origin == impl_->origin) return;
  impl_->origin = std::move(origin);
  ++impl_->origin_number;
  impl_->held.clear();
  impl_->wanted.clear();
  impl_->bytes = 0;
  impl_->changed.notify_all();
}

void TileStore::begin_frame() {
  const std::scoped_lock lock(impl_->mutex);
  std::erase_if(impl_->wanted, [&](const Impl::Wanted& tile) { return tile.asked != impl_->frame; });
  ++impl_->frame;
  impl_->changed.notify_all();
}

std::shared_ptr<const Matrix> TileStore::get(const std::shared_ptr<const MatrixSource>& source, const TileKey& key,
                                             Reduction how) {
  const std::scoped_lock lock(impl_->mutex);
  if (auto blocks = impl_->look(key)) return blocks;
  if (impl_->running == key) return nullptr;
  const auto same =
      std::find_if(impl_->wanted.begin(), impl_->wanted.end(), [&](const auto& tile) { return tile.key == key; });
  if (same != impl_->wanted.end()) {
    same->asked = impl_->frame;
    return nullptr;
  }
  impl_->wanted.push_back({source, key, how, impl_->frame});
  if (!impl_->worker.joinable()) impl_->worker = std::thread([impl = impl_.get()] { impl->work(); });
  impl_->changed.notify_all();
  return nullptr;
}

std::shared_ptr<const Matrix> TileStore::find(const TileKey& key) {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->look(key);
}

std::uint64_t TileStore::computed() const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->computed;
}

bool TileStore::idle() const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->wanted.empty() && !impl_->running;
}

void TileStore::wait() const {
  std::unique_lock lock(impl_->mutex);
  impl_->changed.wait(lock, [&] { return impl_->wanted.empty() && !impl_->running; });
}

std::size_t TileStore::bytes() const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->bytes;
}

}  // namespace qkv
