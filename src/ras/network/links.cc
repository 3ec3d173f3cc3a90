#include "ras/network/links.h"

#include <utility>

namespace tutti::ras {

Peer& Links::add(PeerLink link, Role role, ProcessId process) {
  const auto now = SteadyClock::now();
  const std::uint64_t name = ++last_;
  auto& peer = peers_[name];
  peer = std::make_unique<Peer>(Peer{name, role, process, std::move(link), now, now, now});
  if (peer->link.ended()) return *peer;
  peer->watchesWrite = peer->link.wantsWrite();
  if (!poller_.add(peer->link.fd(), name, peer->watchesWrite)) peer->link.close("the system cannot watch it");
  return *peer;
}

Peer* Links::find(std::uint64_t name) {
  const auto found = peers_.find(name);
  return found != peers_.end() ? found->second.get() : nullptr;
}

void Links::settle(Peer& peer) {
  if (peer.link.ended() || peer.watchesWrite == peer.link.wantsWrite()) return;
  peer.watchesWrite = !peer.watchesWrite;
  poller_.setWrite(peer.link.fd(), peer.name, peer.watchesWrite);
}

void Links::forEach(const std::function<void(Peer&)>& each) {
  for (auto& [name, peer] : peers_) each(*peer);
}

}  // namespace tutti::ras
