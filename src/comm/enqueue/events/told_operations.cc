#include "comm/enqueue/events/told_operations.h"

namespace tutti::comm {

template <class Is>
std::size_t OperationFinder::find(const Is& is) {
  for (std::size_t i = first_; i < told_.size(); ++i) {
    if (taken_[i] || !is(told_[i].event)) continue;
    taken_[i] = true;
    while (first_ < told_.size() && taken_[first_]) ++first_;
    return i;
  }
  return kNobody;
}

std::size_t OperationFinder::collective(const device::CollWork& work) {
  return find([&](const plugin::Event& event) {
    return event.type == ncclProfileColl && event.coll.sendBuff == work.send && event.coll.recvBuff == work.recv;
  });
}

std::size_t OperationFinder::message(bool sends, int peer, const void* buffer) {
  return find([&](const plugin::Event& event) {
    if (event.type != ncclProfileP2p) return false;
    const bool isSend = event.p2p.func[0] == 'S';
    return isSend == sends && event.p2p.peer == peer && event.p2p.buff == buffer;
  });
}

}  // namespace tutti::comm
