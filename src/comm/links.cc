#include "comm/links.h"

#include <algorithm>
#include <span>

namespace tutti {

namespace {

using device::ConnKind;

class LinkList {
 public:
  LinkList(int self, int channels) : self_(self), channels_(channels) {}

  void add(int peer, Direction direction, ConnKind kind) {
    const LinkRequest request{peer, direction, kind, channels_};
    if (peer == self_ || std::find(links_.begin(), links_.end(), request) != links_.end()) return;
    links_.push_back(request);
  }
  void addBothWays(std::span<const int> peers, ConnKind kind) {
    for (const int peer : peers) {
      add(peer, Direction::Send, kind);
      add(peer, Direction::Recv, kind);
    }
  }
  std::vector<LinkRequest> take() { return std::move(links_); }

 private:
  int self_;
  int channels_;
  std::vector<LinkRequest> links_;
};

}  // namespace

std::vector<LinkRequest> linksOf(const Plan& plan, const Neighbours& neighbours, int channels) {
  LinkList links(neighbours.rank, channels);
  if (plan.usesRing) {
    links.add(neighbours.ringNext, Direction::Send, ConnKind::Graph);
    links.add(neighbours.ringPrev, Direction::Recv, ConnKind::Graph);
  }
  if (plan.usesTree) links.addBothWays(neighbours.tree, ConnKind::Graph);
  if (plan.usesPat) links.addBothWays(neighbours.pat, ConnKind::Graph);
  links.addBothWays(plan.meshPeers, ConnKind::Mesh);
  for (const int peer : plan.sendPeers) links.add(peer, Direction::Send, ConnKind::Mesh);
  for (const int peer : plan.recvPeers) links.add(peer, Direction::Recv, ConnKind::Mesh);
  return links.take();
}

}  // namespace tutti
