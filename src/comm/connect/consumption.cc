#include "comm/connect/consumption.h"

#include <array>
#include <span>

#include "device/conn_view.h"
#include "gpu/memory.h"
#include "proxy/task.h"
#include "transport/common/transport.h"

namespace tutti::comm {

namespace {

using Counters = std::array<device::Counter, device::kProtocols>;

Result<Counters> countersAt(const gpu::Device& device, const device::Counter* place) {
  Counters counters{};
  TRY(gpu::copyToHost(device, std::as_writable_bytes(std::span(counters)), reinterpret_cast<CUdeviceptr>(place)));
  return counters;
}

}  // namespace

Result<bool> allTaken(const gpu::Device& device, transport::Endpoint& end, device::Direction direction) {
  if (direction != device::Direction::Send) return true;
  // What a host thread has taken out of the slots may still be on its way to the network.
  if (const proxy::ProgressTask* const task = end.task(); task != nullptr) {
    const proxy::TaskCounters counters = task->counters();
    if (counters.posted != counters.done) return false;
  }
  const transport::ConnView view = end.view();
  ASSIGN(const Counters sent, countersAt(device, transport::fifosOf(view).step));
  ASSIGN(const Counters consumed, countersAt(device, transport::fifosOf(view).head));
  for (std::size_t p = 0; p < sent.size(); ++p) {
    if (consumed[p].value < sent[p].value) return false;
  }
  return true;
}

}  // namespace tutti::comm
