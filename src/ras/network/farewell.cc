#include "ras/network/farewell.h"

namespace tutti::ras {

namespace {

/// So many who do not answer are enough.
constexpr std::size_t kTries = 16;

}  // namespace

/// With it goes what this process knows of others that are gone: whoever told it may be gone as well.
void Farewell::tell(Peer& peer) {
  std::vector<const Member*> gone;
  for (const Member* const member : members_.all()) {
    if (member->facts.state != ProcessState::Alive) gone.push_back(member);
  }
  peer.link.send(Message::Goodbye, encodeTable(gone, peer.link.key()));
  pending_.insert(peer.name);
  links_.settle(peer);
}

void Farewell::begin() {
  begun_ = true;
  links_.forEach([this](Peer& peer) {
    if (peer.role != Role::Leg && peer.process != 0 && !peer.link.ended() && !peer.parting) tell(peer);
  });
  tend();
}

void Farewell::tend() {
  if (done_ || !pending_.empty()) return;
  done_ = true;
  if (staysSomebody_ || tried_.size() >= kTries) return;
  for (const Member* const member : members_.successors()) {
    if (!tried_.insert(member->facts.id).second) continue;
    Peer& peer = links_.add(PeerLink(member->facts.address, member->key), Role::Watch, member->facts.id);
    const Member* const self = &members_.self();
    peer.link.send(Message::Intro, encodeTable(std::span(&self, 1), member->key));
    tell(peer);
    done_ = false;
    return;
  }
}

bool Farewell::heard(const Peer& peer) {
  if (pending_.erase(peer.name) == 0) return false;
  staysSomebody_ = true;
  return true;
}

void Farewell::ended(const Peer& peer) {
  pending_.erase(peer.name);
}

}  // namespace tutti::ras
