// What both kinds of sending lanes have to say of a kernel.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "transport/net/lane/counters.h"
#include "transport/net/lane/path.h"

namespace tutti::net {

/// The size that the kernel gave `step` is none.
Status notASize(const NetPath& path, std::uint64_t word, std::uint64_t step);

/// The shared slot that the kernel says `step` has is none that it may have.
Status notAPlace(const NetPath& path, std::uint32_t place, std::uint64_t step);

/// Nobody is there for a step any more.
Status sentToNobody(const NetPath& path, std::uint64_t step, std::uint32_t bytes);

/// What the kernel says of the slot of `step`.
inline std::uint64_t sizeSaid(const device::SendConn& view, device::Protocol protocol, std::uint64_t step) {
  return loadCounter(view.words->size[static_cast<std::size_t>(protocol)].of(step));
}

}  // namespace tutti::net
