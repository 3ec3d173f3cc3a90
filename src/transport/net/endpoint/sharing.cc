#include "transport/net/endpoint/sharing.h"

namespace tutti::net {

std::shared_ptr<SharedConnection> ConnectionSharing::enter(const JoinKey& key, int most,
                                                           const std::shared_ptr<NetConnection>& connection) {
  std::weak_ptr<SharedConnection>& known = connections_[key];
  std::shared_ptr<SharedConnection> shared = known.lock();
  if (shared == nullptr || shared->complete || shared->ends == most) {
    shared = std::make_shared<SharedConnection>();
    shared->connection = connection;
    known = shared;
  }
  ++shared->ends;
  return shared;
}

std::shared_ptr<RecvSequence> ConnectionSharing::turnsOf(int peer) {
  std::weak_ptr<RecvSequence>& known = turns_[peer];
  std::shared_ptr<RecvSequence> turns = known.lock();
  if (turns == nullptr) known = turns = std::make_shared<RecvSequence>();
  return turns;
}

}  // namespace tutti::net
