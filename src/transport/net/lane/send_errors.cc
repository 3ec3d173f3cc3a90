#include "transport/net/lane/send_errors.h"

#include "base/log.h"

namespace tutti::net {

Status notASize(const NetPath& path, std::uint64_t word, std::uint64_t step) {
  return fail(ncclInternalError,
              "{}: the kernel gave step {} the size {:#x}, which is none: its memory was overwritten", path.text(),
              step, word);
}

Status notAPlace(const NetPath& path, std::uint32_t place, std::uint64_t step) {
  return fail(
      ncclInternalError,
      "{}: the kernel gave step {} the shared slot number {}, which it does not have: its memory was overwritten",
      path.text(), step, place);
}

Status sentToNobody(const NetPath& path, std::uint64_t step, std::uint32_t bytes) {
  return fail(path.departureCode(),
              "{}: {}, but a kernel here sends it step {} of {} bytes; do all ranks call the same operations before "
              "they destroy the communicator?",
              path.text(), path.departureText(), step, bytes);
}

}  // namespace tutti::net
