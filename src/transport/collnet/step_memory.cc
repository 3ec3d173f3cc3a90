#include "transport/collnet/step_memory.h"

#include <cstring>

#include "plugin/network/collnet.h"
#include "transport/net/lane/user_registrations.h"

namespace tutti::collnet {

StepMemory::StepMemory(const StepSlots& slots, std::byte* user, StepRange part, net::UserRegistrations* known)
    : memory_(slots), part_(part) {
  if (user == nullptr || part.bytes == 0) return;
  if (known != nullptr) use_ = known->begin(user, part.bytes);
  if (!use_) {
    apart_ = user;
    return;
  }
  memory_ = {user, use_->registration};
  first_ = part.offset;
}

plugin::CollNetBuffer StepMemory::at(StepRange range) const {
  // What is nobody's part lies nowhere.
  return {range.bytes == 0 ? memory_.begin : memory_.begin + (range.offset - first_), range.bytes,
          memory_.registration};
}

void StepMemory::copyToSlots() const {
  if (apart_ != nullptr) std::memcpy(memory_.begin + part_.offset, apart_, part_.bytes);
}

void StepMemory::copyFromSlots() const {
  if (apart_ != nullptr) std::memcpy(apart_, memory_.begin + part_.offset, part_.bytes);
}

void StepMemory::end(net::UserRegistrations* known) {
  if (use_) known->end(*use_);
  use_.reset();
}

}  // namespace tutti::collnet
