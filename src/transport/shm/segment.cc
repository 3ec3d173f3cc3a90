#include "transport/shm/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/log.h"
#include "transport/shm/numa.h"

namespace tutti::shm {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

std::size_t wholePages(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

const char* remedyFor(int error) {
  switch (error) {
    case EMFILE:
    case ENFILE:
      return "Raise the descriptor limit (ulimit -n), or set NCCL_SHM_DISABLE=1";
    case ENOMEM:
    case ENOSPC:
      return "Raise the memory limit of the host or container, lower NCCL_BUFFSIZE, or set NCCL_SHM_DISABLE=1";
    case EFBIG:
      return "Raise the file size limit (ulimit -f), or set NCCL_SHM_DISABLE=1";
    default:
      return "NCCL_SHM_DISABLE=1 does without shared memory";
  }
}

Status refuse(const char* call, int error, std::size_t bytes, std::string_view about) {
  return fail(ncclSystemError, "{}: {} for {} bytes of shared host memory failed: {}. {}", about, call, bytes,
              errnoText(error), remedyFor(error));
}

/// Beyond the limit the system would not only refuse but send a signal that ends the process.
bool aboveFileLimit(std::size_t bytes) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && bytes > limit.rlim_cur;
}

/// Takes the pages now: what is missing is an error here and not a signal in the middle of a kernel.
int reserve(int fd, std::size_t bytes) {
  int result = 0;
  do {
    result = ::fallocate(fd, 0, 0, static_cast<off_t>(bytes));
  } while (result != 0 && errno == EINTR);
  return result == 0 || errno == EOPNOTSUPP || errno == ENOSYS ? 0 : errno;
}

Mapping mapShared(int fd, std::size_t bytes) {
  void* const address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return address == MAP_FAILED ? Mapping() : Mapping(MappedRange{address, bytes});
}

}  // namespace

Result<Segment> Segment::create(std::size_t bytes, int numaNode, std::string_view about) {
  bytes = wholePages(bytes);
  if (aboveFileLimit(bytes)) return refuse("ftruncate", EFBIG, bytes, about);
  Fd fd(::memfd_create("tutti-shm", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return refuse("memfd_create", errno, bytes, about);
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) return refuse("ftruncate", errno, bytes, about);
  Mapping mapping = mapShared(fd.get(), bytes);
  if (!mapping.valid()) return refuse("mmap", errno, bytes, about);
  placeNear(mapping.get().address, bytes, numaNode);
  if (const int error = reserve(fd.get(), bytes); error != 0) return refuse("fallocate", error, bytes, about);
  if (::fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) return refuse("fcntl(F_ADD_SEALS)", errno, bytes, about);
  return Segment(std::move(fd), std::move(mapping));
}

Result<Segment> Segment::adopt(Fd fd, std::size_t bytes, std::string_view about) {
  bytes = wholePages(bytes);
  struct stat facts {};
  if (::fstat(fd.get(), &facts) != 0) return refuse("fstat", errno, bytes, about);
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (static_cast<std::size_t>(facts.st_size) != bytes || seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return fail(ncclInternalError,
                "{}: the peer's descriptor is not sealed memory of {} bytes, but has {} bytes; do all "
                "ranks use the same library?",
                about, bytes, facts.st_size);
  }
  Mapping mapping = mapShared(fd.get(), bytes);
  if (!mapping.valid()) return refuse("mmap", errno, bytes, about);
  return Segment(Fd(), std::move(mapping));
}

std::span<std::byte> Segment::memory() const {
  return {static_cast<std::byte*>(mapping_.get().address), mapping_.get().bytes};
}

}  // namespace tutti::shm
