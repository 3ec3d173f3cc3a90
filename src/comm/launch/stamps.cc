#include "comm/launch/stamps.h"

#include <algorithm>
#include <bit>

namespace tutti::comm {

namespace {

/// What is taken at a time: page-locked memory comes in pages.
constexpr std::size_t kLeast = 4096 / sizeof(device::Stamp);

}  // namespace

Stamps::~Stamps() {
  pool_->giveBack(piece_);
}

void Stamps::clear() const {
  std::fill_n(piece_.host, count_, device::Stamp{});
}

std::optional<Stamps::Piece> StampPool::freeOne(std::size_t room) {
  const std::lock_guard lock(mutex_);
  std::vector<Stamps::Piece>& pieces = free_[room];
  if (pieces.empty()) return std::nullopt;
  const Stamps::Piece piece = pieces.back();
  pieces.pop_back();
  return piece;
}

Result<std::unique_ptr<Stamps>> StampPool::take(const gpu::Device& device, std::size_t stamps) {
  const std::size_t room = std::bit_ceil(std::max(stamps, kLeast));
  if (const auto kept = freeOne(room)) {
    auto result = std::make_unique<Stamps>(shared_from_this(), *kept, stamps);
    result->clear();
    return result;
  }
  ASSIGN(gpu::PinnedBuffer buffer,
         gpu::PinnedBuffer::create(device, room * sizeof(device::Stamp), "the times of kernels for a profiler"));
  const Stamps::Piece piece{reinterpret_cast<device::Stamp*>(buffer.host()),
                            reinterpret_cast<device::Stamp*>(buffer.onDevice()), room};
  {
    const std::lock_guard lock(mutex_);
    memory_.push_back(std::move(buffer));
  }
  return std::make_unique<Stamps>(shared_from_this(), piece, stamps);
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
