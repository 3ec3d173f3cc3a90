#include "comm/connect/awaited_peers.h"

#include <utility>

#include "comm/connect/link_types.h"

namespace tutti::comm {

AwaitedPeers::AwaitedPeers() = default;
AwaitedPeers::~AwaitedPeers() = default;

void AwaitedPeers::set(std::vector<LinkRequest> links) {
  const std::lock_guard lock(mutex_);
  links_ = std::move(links);
}

std::vector<LinkRequest> AwaitedPeers::all() const {
  const std::lock_guard lock(mutex_);
  return links_;
}

}  // namespace tutti::comm
