// Which kinds of events anybody wants to hear of: one word of the process, which is looked at before anything is told.
#pragma once

#include <atomic>

namespace tutti::plugin {

/// Kinds of events that someone wants: an OR of ncclProfile…; 0 where nobody listens. Plugins write it whenever they
/// like. Read once for a call, whose later events use the copy.
extern int eventMaskOfProcess;
inline int eventMask() {
  return std::atomic_ref<int>(eventMaskOfProcess).load(std::memory_order_relaxed);
}

}  // namespace tutti::plugin
