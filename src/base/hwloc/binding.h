// Threads to processors, memory to NUMA nodes: by hwloc, and where it is missing by the system calls that it would
// make.
#pragma once

#include <sched.h>

#include <cstddef>

namespace tutti {

/// Lets the calling thread run on these processors only; those that the machine does not have do not count. Returns 0,
/// or the error number of the system where it does not allow that.
int bindThread(const cpu_set_t& processors);

/// Asks for pages of the range, none of which has been touched, to be taken from that NUMA node while it has any. False
/// where the node is negative or unknown, or the system does not allow it (containers). Reads the machine at each call
/// unless a BindingScope lives.
bool preferNode(void* address, std::size_t bytes, int node);

/// While one lives, whoever binds shares one view of the machine, read when it is first needed. Any thread.
class BindingScope {
 public:
  BindingScope();
  BindingScope(const BindingScope&) = delete;
  ~BindingScope();
};

}  // namespace tutti
