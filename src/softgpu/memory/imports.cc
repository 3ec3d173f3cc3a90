#include "softgpu/memory/imports.h"

namespace tutti::softgpu {

std::shared_ptr<Backing> Imports::map(Fd fd, std::uint64_t inode, std::size_t bytes) {
  std::lock_guard<std::mutex> guard(lock_);
  std::erase_if(mappings_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<Backing>& known = mappings_[inode];
  std::shared_ptr<Backing> mapping = known.lock();
  if (mapping == nullptr) {
    mapping = Backing::adopt(std::move(fd), bytes);
    known = mapping;
  }
  return mapping;
}

void Imports::open(const std::shared_ptr<Allocation>& range, MemoryTable* table) {
  std::lock_guard<std::mutex> guard(lock_);
  Open& entry = open_[range->base];
  if (entry.count++ != 0) return;
  entry.range = range;
  entry.table = table;
  if (table != nullptr) table->insert(range);
}

std::shared_ptr<Allocation> Imports::find(std::uintptr_t base) {
  std::lock_guard<std::mutex> guard(lock_);
  const auto it = open_.find(base);
  return it == open_.end() ? nullptr : it->second.range;
}

void Imports::close(std::uintptr_t base) {
  std::lock_guard<std::mutex> guard(lock_);
  const auto it = open_.find(base);
  if (it == open_.end() || --it->second.count != 0) return;
  if (it->second.table != nullptr) it->second.table->take(base);
  open_.erase(it);
}

}  // namespace tutti::softgpu
