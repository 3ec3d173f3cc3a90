#include "softgpu/memory/memory.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/bounded_write.h"

namespace tutti::softgpu {
namespace {

constexpr const char* kMemfdPrefix = "softgpu-device-";

std::size_t roundUp(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

constexpr std::size_t kHugePage = std::size_t{2} << 20;

/// Maps the file; MAP_FAILED where the system refuses. From the size of a huge page on at a multiple of it.
void* mapFile(int fd, std::size_t size) {
  constexpr int kAccess = PROT_READ | PROT_WRITE;
  if (size < kHugePage) return ::mmap(nullptr, size, kAccess, MAP_SHARED, fd, 0);
  void* reserved = ::mmap(nullptr, size + kHugePage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return MAP_FAILED;
  const auto begin = reinterpret_cast<std::uintptr_t>(reserved);
  const std::size_t front = roundUp(begin, kHugePage) - begin;
  char* const wanted = static_cast<char*>(reserved) + front;
  void* base = ::mmap(wanted, size, kAccess, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, 0);
  if (base == MAP_FAILED) {
    ::munmap(reserved, size + kHugePage);
    return MAP_FAILED;
  }
  const std::size_t used = roundUp(size, static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
  if (front != 0) ::munmap(reserved, front);
  if (front + used < size + kHugePage) ::munmap(wanted + used, size + kHugePage - front - used);
  return base;
}

}  // namespace

Fd createMemfd(std::size_t size, int physicalDevice) {
  char name[64];
  std::snprintf(name, sizeof(name), "%s%d", kMemfdPrefix, physicalDevice);
  const WriteSignals guard;  // a file beyond RLIMIT_FSIZE is an error like any other
  Fd fd(::memfd_create(name, MFD_CLOEXEC));
  if (!fd.valid() || ::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) return Fd();
  return fd;
}

int deviceOfMemfd(int fd) {
  char path[64];
  char target[128];
  std::snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
  const ssize_t length = ::readlink(path, target, sizeof(target) - 1);
  if (length < 0) return -1;
  target[length] = '\0';
  const char* found = std::strstr(target, kMemfdPrefix);
  return found == nullptr ? -1 : std::atoi(found + std::strlen(kMemfdPrefix));
}

std::shared_ptr<Backing> Backing::create(std::size_t size, int physicalDevice) {
  const std::size_t bytes = roundUp(size, static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
  Fd fd = createMemfd(bytes, physicalDevice);
  if (!fd.valid()) return nullptr;
  return adopt(std::move(fd), bytes);
}

std::shared_ptr<Backing> Backing::adopt(Fd fd, std::size_t size) {
  void* base = mapFile(fd.get(), size);
  if (base == MAP_FAILED) return nullptr;
  ::madvise(base, size, MADV_DONTDUMP);  // device memory is in no core file
  ::madvise(base, size, MADV_HUGEPAGE);  // only a hint: refused where shared memory has no huge pages
  return std::make_shared<Backing>(std::move(fd), base, size);
}

Backing::Backing(Fd fd, void* base, std::size_t size) : fd_(std::move(fd)), base_(base), size_(size) {
  struct stat status = {};
  if (::fstat(fd_.get(), &status) == 0) inode_ = status.st_ino;
}

Backing::~Backing() {
  ::munmap(base_, size_);
  if (fd() < 0) static_cast<void>(fd_.release());
}

int Backing::fd() const {
  struct stat status = {};
  return ::fstat(fd_.get(), &status) == 0 && status.st_ino == inode_ ? fd_.get() : -1;
}

void PoolFigure::add(std::uint64_t bytes) {
  const std::uint64_t sum = now_.fetch_add(bytes) + bytes;
  std::uint64_t most = most_.load();
  while (most < sum && !most_.compare_exchange_weak(most, sum)) {
  }
}

bool MemoryTable::insert(std::shared_ptr<Allocation> allocation) {
  std::unique_lock<std::shared_mutex> guard(lock_);
  const auto next = ranges_.lower_bound(allocation->base);
  if (next != ranges_.end() && next->first < allocation->base + allocation->size) return false;
  if (next != ranges_.begin()) {
    const Allocation& before = *std::prev(next)->second;
    if (before.base + before.size > allocation->base) return false;
  }
  ranges_.emplace(allocation->base, std::move(allocation));
  return true;
}

std::shared_ptr<Allocation> MemoryTable::find(std::uintptr_t address) const {
  std::shared_lock<std::shared_mutex> guard(lock_);
  auto it = ranges_.upper_bound(address);
  if (it == ranges_.begin()) return nullptr;
  --it;
  return address < it->first + it->second->size ? it->second : nullptr;
}

std::shared_ptr<Allocation> MemoryTable::take(std::uintptr_t base) {
  std::unique_lock<std::shared_mutex> guard(lock_);
  auto taken = ranges_.extract(base);
  return taken.empty() ? nullptr : std::move(taken.mapped());
}

std::vector<std::shared_ptr<Allocation>> MemoryTable::all() const {
  std::shared_lock<std::shared_mutex> guard(lock_);
  std::vector<std::shared_ptr<Allocation>> result;
  for (const auto& [base, allocation] : ranges_) result.push_back(allocation);
  return result;
}

}  // namespace tutti::softgpu
