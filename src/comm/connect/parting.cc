// Connections that are to end in peace (comm/ending/parting.h).
#include <algorithm>
#include <memory>
#include <mutex>

#include "comm/connect/channels.h"
#include "comm/connect/connect.h"
#include "proxy/task.h"
#include "transport/common/transport.h"

namespace tutti::comm {

void ChannelSet::part(std::optional<int> peer) const {
  const std::lock_guard lock(mutex_);
  for (const OpenLink& link : links_) {
    if (peer && link.request.peer != *peer) continue;
    for (const auto& end : link.endpoints) {
      if (end->task() != nullptr && !isShared(*end)) end->task()->part();
    }
  }
}

bool ChannelSet::parted() const {
  const std::lock_guard lock(mutex_);
  return std::all_of(links_.begin(), links_.end(), [this](const OpenLink& link) {
    return std::all_of(link.endpoints.begin(), link.endpoints.end(), [this](const auto& end) {
      return end->task() == nullptr || isShared(*end) || end->task()->parted();
    });
  });
}

}  // namespace tutti::comm
