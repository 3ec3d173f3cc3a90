// Connections that a communicator lacks: taken from relatives where they have them, opened otherwise.
#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "comm/connect/channels.h"
#include "comm/connect/connect.h"
#include "comm/connect/links.h"
#include "comm/connect/shared_connections.h"

namespace tutti::comm {

bool ChannelSet::isShared(transport::Endpoint& endpoint) const {
  return family_.store != nullptr && endpoint.shareable();
}

bool ChannelSet::drivenAlone() const {
  if (drivesCollNet_) return true;
  const std::lock_guard lock(mutex_);
  return std::any_of(links_.begin(), links_.end(), [this](const OpenLink& link) {
    return std::any_of(link.endpoints.begin(), link.endpoints.end(),
                       [this](const auto& end) { return end->task() != nullptr && !isShared(*end); });
  });
}

SharedKey ChannelSet::keyOf(const ConnectContext& context, const LinkRequest& link, int channel, bool driven) const {
  const bool oneOfMany = driven && link.kind == device::ConnKind::Mesh;
  return {.peer = family_.places[static_cast<std::size_t>(link.peer)],
          .channel = channel,
          .kind = link.kind,
          .direction = link.direction,
          .slotBytes = oneOfMany ? context.proxiedMeshSlots : context.slotBytes[static_cast<std::size_t>(link.kind)]};
}

/// Whichever transport it goes by; without an endpoint: there is none.
SharedEnd ChannelSet::relativesEnd(const ConnectContext& context, const LinkRequest& link, int channel) const {
  for (const bool driven : {false, true}) {
    SharedEnd end = family_.store->find(keyOf(context, link, channel, driven));
    if (end.endpoint != nullptr && (end.endpoint->task() != nullptr) == driven) return end;
  }
  return {};
}

Status ChannelSet::adopt(const ConnectContext& context, std::span<const LinkRequest> wanted) {
  if (family_.store == nullptr) return {};
  for (const LinkRequest& link : wanted) {
    for (const int channel : channelsIn(link.channels)) {
      SharedEnd end = relativesEnd(context, link, channel);
      if (end.endpoint == nullptr) continue;
      OpenLink found{link, {std::move(end.endpoint)}, std::move(end.fallback), end.transport};
      found.request.channels = oneChannel(channel);
      TRY(add(std::move(found)));
    }
  }
  return {};
}

Status ChannelSet::addAndShare(const ConnectContext& context, OpenLink link) {
  if (family_.store != nullptr) {
    const std::vector<int> channels = channelsIn(link.request.channels);
    for (std::size_t i = 0; i < link.endpoints.size(); ++i) {
      transport::Endpoint& endpoint = *link.endpoints[i];
      if (!isShared(endpoint)) continue;
      const SharedKey key = keyOf(context, link.request, channels[i], endpoint.task() != nullptr);
      TRY(family_.store->add(key, {link.endpoints[i], link.fallback, link.transport}));
    }
  }
  return add(std::move(link));
}

Status openMissing(const ConnectContext& context, ChannelSet& channels, std::span<const LinkRequest> wanted) {
  std::vector<LinkRequest> missing = channels.missing(wanted);
  if (missing.empty()) return {};
  TRY(channels.adopt(context, missing));
  missing = channels.missing(missing);
  if (missing.empty()) return {};
  ASSIGN(auto links, connectLinks(context, missing));
  for (OpenLink& link : links) TRY(channels.addAndShare(context, std::move(link)));
  return {};
}

Status connectRing(const ConnectContext& context, ChannelSet& channels) {
  PlanNeeds needs;
  needs.usesRing = true;
  return openMissing(context, channels, linksOf(needs, channels.neighbours()));
}

}  // namespace tutti::comm
