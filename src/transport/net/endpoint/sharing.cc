#include "transport/net/endpoint/sharing.h"

namespace tutti::net {

std::shared_ptr<SharedJoin> SharedJoins::enter(const JoinKey& key, int most, const std::shared_ptr<NetJoin>& join) {
  std::weak_ptr<SharedJoin>& known = joins_[key];
  std::shared_ptr<SharedJoin> shared = known.lock();
  if (shared == nullptr || shared->complete || shared->ends == most) {
    shared = std::make_shared<SharedJoin>();
    shared->join = join;
    known = shared;
  }
  ++shared->ends;
  return shared;
}

std::shared_ptr<MessageTurns> SharedJoins::turnsOf(int peer) {
  std::weak_ptr<MessageTurns>& known = turns_[peer];
  std::shared_ptr<MessageTurns> turns = known.lock();
  if (turns == nullptr) known = turns = std::make_shared<MessageTurns>();
  return turns;
}

}  // namespace tutti::net
