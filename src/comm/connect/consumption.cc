#include "comm/connect/consumption.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <thread>

#include "base/host.h"
#include "base/log.h"
#include "comm/connect/channels.h"
#include "comm/connect/connect.h"
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

Result<const OpenLink*> ChannelSet::unconsumed(const std::function<bool(int rank)>& hasLeft, Extent extent) const {
  for (const OpenLink& link : links_) {
    if (hasLeft && !link.endpoints.empty() && hasLeft(link.request.peer)) continue;
    for (const auto& endpoint : link.endpoints) {
      if (extent == Extent::Own && isShared(*endpoint)) continue;
      ASSIGN(const bool taken, allTaken(*device_, *endpoint, link.request.direction));
      if (!taken) return &link;
    }
  }
  return nullptr;
}

Result<bool> ChannelSet::allConsumed(const std::function<bool(int rank)>& hasLeft, Extent extent) const {
  ASSIGN(const OpenLink* const waiting, unconsumed(hasLeft, extent));
  return waiting == nullptr;
}

Status ChannelSet::awaitConsumed(const Abort& abort, Deadline deadline, const std::function<bool(int rank)>& hasLeft,
                                 Extent extent) {
  auto pause = std::chrono::microseconds(20);
  while (true) {
    if (abort.raised()) return abort.status();
    ASSIGN(const OpenLink* const waiting, unconsumed(hasLeft, extent));
    if (waiting == nullptr) break;
    if (deadline.expired()) {
      return fail(
          ncclRemoteError,
          "rank {} of {} on host {}, device {}, waited in vain for rank {} to take what was sent to "
          "it: that rank has not issued the matching operation, or hangs. Use ncclCommAbort to end a communicator "
          "whose operations cannot complete; TUTTI_BOOTSTRAP_TIMEOUT_SEC sets the time allowed",
          plan_.rank, plan_.nRanks, hostName(), device_->ordinal(), waiting->request.peer);
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(5000));
  }
  for (OpenLink& link : links_) {
    for (auto& endpoint : link.endpoints) {
      if (!isShared(*endpoint)) endpoint->settle();
    }
  }
  return {};
}

}  // namespace tutti::comm
