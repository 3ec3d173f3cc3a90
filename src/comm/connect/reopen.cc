#include "comm/connect/reopen.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "comm/connect/channels.h"
#include "comm/connect/connect.h"

namespace tutti::comm {

namespace {

bool sameBut(const LinkRequest& a, const LinkRequest& b) {
  return a.peer == b.peer && a.direction == b.direction && a.kind == b.kind;
}

/// Takes the first link of each peer, direction and kind: what both ends say of two of a sort would mix. Both ends have
/// opened those in the same order.
std::vector<KnownLink> takeRound(std::vector<KnownLink>& left) {
  std::vector<KnownLink> round;
  std::vector<KnownLink> rest;
  for (KnownLink& link : left) {
    const bool taken = std::any_of(round.begin(), round.end(),
                                   [&](const KnownLink& other) { return sameBut(other.request, link.request); });
    (taken ? rest : round).push_back(link);
  }
  left = std::move(rest);
  return round;
}

}  // namespace

Status reopenAll(const ConnectContext& context, ChannelSet& channels) {
  std::vector<KnownLink> left = channels.known();
  while (!left.empty()) {
    ASSIGN(auto links, reconnectLinks(context, takeRound(left)));
    for (OpenLink& link : links) TRY(channels.addAndShare(context, std::move(link)));
  }
  return {};
}

}  // namespace tutti::comm
