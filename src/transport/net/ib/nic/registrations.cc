#include "transport/net/ib/nic/registrations.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/log.h"

namespace tutti::net::ib {

namespace {

constexpr int kAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

std::uintptr_t pageBytes() {
  static const auto bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

std::optional<std::size_t> lockedMemoryLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

std::string memlockRemedy(int error, std::size_t asked, std::size_t held) {
  if (error != ENOMEM && error != EAGAIN && error != EPERM) return {};
  const std::optional<std::size_t> limit = lockedMemoryLimit();
  if (!limit) {
    return fmt::format(
        ". RLIMIT_MEMLOCK is unlimited, so this is a limit of the NIC or of the host's memory: {} bytes were asked "
        "for, {} are registered",
        asked, held);
  }
  return fmt::format(
      ". RLIMIT_MEMLOCK of this process is {} bytes: {} were asked for, {} are registered by this library. Raise it "
      "(ulimit -l unlimited; LimitMEMLOCK=infinity in the unit of a service; --ulimit memlock=-1 of a container)",
      *limit, asked, held);
}

Registrations::Registrations(const Verbs& verbs, ibv_pd* domain, std::string name, bool relaxedOrdering)
    : verbs_(verbs), domain_(domain), name_(std::move(name)), relaxedOrdering_(relaxedOrdering) {}

Registrations::~Registrations() {
  for (const auto& [key, entry] : entries_) verbs_.dereg_mr(entry.region);
}

Result<Registrations::Key> Registrations::keyOf(const MemoryRange& range) {
  const std::uintptr_t mask = pageBytes() - 1;
  const auto address = reinterpret_cast<std::uintptr_t>(range.address);
  Key key{.first = address & ~mask, .strictOrder = range.strictOrder};
  key.bytes = ((address + range.bytes + mask) & ~mask) - key.first;
  if (range.fd < 0) return key;
  struct stat about {};
  if (::fstat(range.fd, &about) != 0) {
    const int error = errno;
    return fail(ncclSystemError, "NET/IB : The descriptor {} of a dma-buf is none: {}", range.fd, errnoText(error));
  }
  // The region begins at a page, so it begins earlier in the dma-buf as well.
  const std::uintptr_t before = address - key.first;
  if (range.offset < before) {
    return fail(ncclInvalidArgument, "NET/IB : A dma-buf cannot begin at {:#x}, within a page", address);
  }
  key.file = about.st_ino;
  key.offset = range.offset - before;
  return key;
}

ibv_mr* Registrations::registerNow(const Key& key, const MemoryRange& range) {
  const bool relaxed = ordersRelaxed() && !range.strictOrder;
  const int access = kAccess | (relaxed ? IBV_ACCESS_RELAXED_ORDERING : 0);
  errno = 0;
  auto* const first = reinterpret_cast<void*>(key.first);
  if (range.fd >= 0) return verbs_.reg_dmabuf_mr(domain_, key.offset, key.bytes, key.first, range.fd, access);
  if (relaxed) return verbs_.reg_mr_iova2(domain_, first, key.bytes, key.first, static_cast<unsigned>(access));
  return verbs_.reg_mr(domain_, first, key.bytes, access);
}

Status Registrations::refused(const Key& key, const MemoryRange& range, int error) const {
  if (range.fd >= 0) {
    return fail(ncclSystemError,
                "NET/IB : Call to ibv_reg_dmabuf_mr on {} failed with error {}: {} bytes of GPU memory at {:#x}{}",
                name_, errnoText(error), key.bytes, key.first, memlockRemedy(error, key.bytes, bytes_));
  }
  return fail(ncclSystemError, "NET/IB : Call to ibv_reg_mr on {} failed with error {}: {} bytes at {:#x}{}", name_,
              errnoText(error), key.bytes, key.first, memlockRemedy(error, key.bytes, bytes_));
}

// rdma-core's libibverbs says of every region that it is as long as was asked for; NCCL_IBVERBS_LIB may be another.
Status Registrations::tooShort(const Key& key, ibv_mr* region) const {
  const std::size_t covered = region->length;
  verbs_.dereg_mr(region);
  return fail(
      ncclSystemError,
      "NET/IB : {} has registered {} of the {} bytes at {:#x}: that is not what libibverbs promises. Update the "
      "library and the driver, or leave the NIC out (NCCL_IB_HCA=^{})",
      name_, covered, key.bytes, key.first, name_);
}

Result<ibv_mr*> Registrations::acquire(const MemoryRange& range) {
  ASSIGN(const Key key, keyOf(range));
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found != entries_.end()) {
    ++found->second.users;
    return found->second.region;
  }
  if (range.fd >= 0 && verbs_.reg_dmabuf_mr == nullptr) {
    return fail(ncclSystemError,
                "NET/IB : This libibverbs registers no dma-bufs (ibv_reg_dmabuf_mr): update rdma-core");
  }
  ibv_mr* const region = registerNow(key, range);
  if (region == nullptr) return refused(key, range, errno);
  if (region->length < key.bytes) return tooShort(key, region);
  entries_[key] = {.region = region, .users = 1};
  keys_[region] = key;
  bytes_ += key.bytes;
  return region;
}

Status Registrations::release(ibv_mr* region) {
  const std::lock_guard lock(mutex_);
  const auto known = keys_.find(region);
  if (known == keys_.end()) {
    return fail(ncclInternalError, "NET/IB: could not find mr {} inside cache of {} entries", fmt::ptr(region),
                entries_.size());
  }
  const auto found = entries_.find(known->second);
  if (--found->second.users > 0) return {};
  bytes_ -= known->second.bytes;
  entries_.erase(found);
  keys_.erase(known);
  if (const int error = verbs_.dereg_mr(region); error != 0) {
    return fail(ncclSystemError, "NET/IB : Call to ibv_dereg_mr on {} failed with error {}", name_, errnoText(error));
  }
  return {};
}

std::size_t Registrations::count() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

std::size_t Registrations::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace tutti::net::ib
