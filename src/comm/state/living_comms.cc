#include "comm/state/living_comms.h"

#include "base/never_destroyed.h"
#include "comm/state/communicator.h"

namespace tutti::comm {

LivingComms& LivingComms::instance() {
  static NeverDestroyed<LivingComms> living;
  return living.get();
}

void LivingComms::add(const ncclComm& comm) {
  const std::lock_guard lock(mutex_);
  comms_.insert(&comm);
}

void LivingComms::remove(const ncclComm& comm) {
  const std::lock_guard lock(mutex_);
  comms_.erase(&comm);
}

std::string LivingComms::failureOf(const ncclComm* comm) const {
  const std::lock_guard lock(mutex_);
  return comms_.contains(comm) ? comm->abort.text() : std::string();
}

}  // namespace tutti::comm
