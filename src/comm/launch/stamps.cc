#include "comm/launch/stamps.h"

#include <algorithm>
#include <atomic>
#include <bit>

namespace tutti::comm {

namespace {

/// Of a piece: a cache line, so that no two launches share one.
constexpr std::size_t kLeastStamps = 64 / sizeof(device::Stamp);
/// Page-locked memory is had at a time for so many.
constexpr std::size_t kSlab = (64 << 10) / sizeof(device::Stamp);

}  // namespace

Stamps::~Stamps() {
  pool_->giveBack(piece_);
}

device::Stamp Stamps::read(std::size_t i) const {
  const auto load = [](std::uint64_t& word) { return std::atomic_ref(word).load(std::memory_order_acquire); };
  return {load(piece_.host[i].begin), load(piece_.host[i].end)};
}

void Stamps::clear() const {
  // Atomic as the kernels' own: they have ended, but nothing but what they wrote here says so.
  const auto clear = [](std::uint64_t& word) { std::atomic_ref(word).store(0, std::memory_order_relaxed); };
  for (std::size_t i = 0; i < piece_.room; ++i) {
    clear(piece_.host[i].begin);
    clear(piece_.host[i].end);
  }
}

std::size_t StampPool::roomFor(std::size_t stamps) {
  return std::bit_ceil(std::max(stamps, kLeastStamps));
}

std::optional<Stamps::Piece> StampPool::freeOne(std::size_t room) {
  const std::lock_guard lock(mutex_);
  std::vector<Stamps::Piece>& pieces = free_[room];
  if (pieces.empty()) return std::nullopt;
  const Stamps::Piece piece = pieces.back();
  pieces.pop_back();
  return piece;
}

Status StampPool::grow(const gpu::Device& device, std::size_t room) {
  const std::size_t stamps = std::max(room, kSlab);
  ASSIGN(gpu::PinnedBuffer slab,
         gpu::PinnedBuffer::create(device, stamps * sizeof(device::Stamp), "the times of kernels for a profiler"));
  auto* const host = reinterpret_cast<device::Stamp*>(slab.host());
  auto* const onDevice = reinterpret_cast<device::Stamp*>(slab.onDevice());
  const std::lock_guard lock(mutex_);
  memory_.push_back(std::move(slab));
  for (std::size_t at = 0; at < stamps; at += room) free_[room].push_back({host + at, onDevice + at, room});
  return {};
}

Result<std::unique_ptr<Stamps>> StampPool::take(const gpu::Device& device, std::size_t stamps) {
  const std::size_t room = roomFor(stamps);
  std::optional<Stamps::Piece> piece = freeOne(room);
  while (!piece) {
    TRY(grow(device, room));
    piece = freeOne(room);
  }
  auto result = std::make_unique<Stamps>(shared_from_this(), *piece);
  result->clear();
  return result;
}

void StampPool::giveBack(const Stamps::Piece& piece) {
  const std::lock_guard lock(mutex_);
  if (!memory_.empty()) free_[piece.room].push_back(piece);
}

void StampPool::close() {
  const std::lock_guard lock(mutex_);
  free_.clear();
  memory_.clear();
}

}  // namespace tutti::comm
