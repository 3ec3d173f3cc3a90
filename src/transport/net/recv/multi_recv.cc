#include "transport/net/recv/multi_recv.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/log.h"

namespace tutti::net {

void MultiRecv::leave(MultiRecvLane& lane) {
  std::erase(lanes_, &lane);
  const std::uint64_t end = made_ + (refused_ ? 1 : 0);
  for (std::uint64_t g = oldest_; g != end; ++g) {
    Group& group = groups_[g % kMostGroups];
    for (std::uint32_t p = 0; p < group.nParts; ++p) {
      if (group.parts[p].lane != &lane) continue;
      group.parts[p].lane = nullptr;
      --group.left;
    }
  }
  retire();
}

void MultiRecv::gather(Group& group) const {
  group.phase = Phase::Posted;
  group.request = nullptr;
  group.nParts = 0;
  for (MultiRecvLane* lane : lanes_) {
    if (group.nParts == mostParts_) break;
    const auto asked = lane->asked();
    if (!asked || !turns_->isNext(asked->turn)) continue;
    group.parts[group.nParts++] = {lane, *asked};
  }
  group.left = group.nParts;
}

Result<bool> MultiRecv::postOne(Group& group) {
  Buffers buffers;
  for (std::uint32_t p = 0; p < group.nParts; ++p) buffers[p] = group.parts[p].receive.into;
  const auto posting = net_->irecv(connection_, std::span(buffers.data(), group.nParts));
  if (!posting.ok()) return failed(posting.status());
  refused_ = posting.value() == nullptr;
  if (refused_) return false;
  group.request = posting.value();
  const std::uint64_t number = made_++;
  for (std::uint32_t p = 0; p < group.nParts; ++p) {
    turns_->posted(group.parts[p].receive.turn);
    if (group.parts[p].lane != nullptr) group.parts[p].lane->posted({number, p});
  }
  return true;
}

Result<bool> MultiRecv::post() {
  bool any = false;
  while (made_ - oldest_ < kMostGroups) {
    if (failure_) return failedBefore();
    Group& next = groups_[made_ % kMostGroups];
    if (!refused_) gather(next);
    if (next.nParts == 0) return any;
    ASSIGN(const bool posted, postOne(next));
    if (!posted) return any;
    any = true;
  }
  return any;
}

Result<bool> MultiRecv::flush(Group& group) {
  if (group.request == nullptr) {
    Buffers buffers;
    std::uint32_t n = 0;
    for (std::uint32_t p = 0; p < group.nParts; ++p) {
      if (!group.parts[p].receive.flushes || group.sizes[p] <= 0) continue;
      buffers[n] = group.parts[p].receive.into;
      buffers[n++].bytes = static_cast<std::size_t>(group.sizes[p]);
    }
    if (n == 0) return true;
    const auto flushing = net_->iflush(connection_, std::span(buffers.data(), n));
    if (!flushing.ok()) return dead(flushing.status());
    group.request = flushing.value();
    if (group.request == nullptr) return true;
  }
  const auto over = net_->test(group.request, {});
  if (!over.ok()) return dead(over.status());
  return over.value();
}

Result<bool> MultiRecv::received(RecvTicket ticket) {
  Group& group = at(ticket);
  if (group.phase == Phase::Here) return true;
  if (dead_) return failedBefore();
  if (group.phase == Phase::Posted) {
    const auto over = net_->test(group.request, std::span(group.sizes.data(), group.nParts));
    if (!over.ok()) return dead(over.status());
    if (!over.value()) return false;
    group.phase = Phase::Flushing;
    group.request = nullptr;
  }
  ASSIGN(const bool flushed, flush(group));
  if (flushed) group.phase = Phase::Here;
  return flushed;
}

int MultiRecv::take(RecvTicket ticket) {
  Group& group = at(ticket);
  group.parts[ticket.part].lane = nullptr;
  --group.left;
  retire();
  return group.sizes[ticket.part];
}

void MultiRecv::retire() {
  while (oldest_ != made_ && groups_[oldest_ % kMostGroups].left == 0) ++oldest_;
}

Status MultiRecv::failed(Status why) {
  failure_ = {why, lastErrorText()};
  return why;
}

Status MultiRecv::dead(Status why) {
  dead_ = true;
  return failed(why);
}

Status MultiRecv::failedBefore() const {
  recallLastError(failure_->said);
  return failure_->why;
}

}  // namespace tutti::net
