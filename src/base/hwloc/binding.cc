#include "base/hwloc/binding.h"

#include <linux/mempolicy.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "base/handle.h"
#include "base/hwloc/topology.h"
#include "base/never_destroyed.h"

namespace tutti {
namespace {

struct SharedView {
  std::mutex mutex;
  int scopes = 0;
  std::shared_ptr<const HwlocTopology> topology;  ///< kept while there are scopes
};

SharedView& sharedView() {
  static NeverDestroyed<SharedView> view;
  return view.get();
}

/// Null where hwloc cannot bind.
std::shared_ptr<const HwlocTopology> viewOfMachine() {
  SharedView& view = sharedView();
  const std::lock_guard lock(view.mutex);
  if (view.topology) return view.topology;
  std::string why;
  std::optional<HwlocTopology> read = HwlocTopology::read(HwlocDetail::Processors, why);
  // Of another machine, everything would succeed and do nothing.
  if (!read || !read->isThisMachine()) return nullptr;
  auto topology = std::make_shared<const HwlocTopology>(std::move(*read));
  if (view.scopes > 0) view.topology = topology;
  return topology;
}

struct BitmapTraits {
  using Type = hwloc_bitmap_t;
  static Type invalid() { return nullptr; }
  static void close(Type bitmap) { Hwloc::instance().calls()->bitmapFree(bitmap); }
};

bool bindByHwloc(const cpu_set_t& processors) {
  const auto machine = viewOfMachine();
  if (!machine) return false;
  const HwlocCalls& calls = machine->calls();
  const Handle<BitmapTraits> set(calls.bitmapAlloc());
  if (!set.valid()) return false;
  const hwloc_const_cpuset_t there = calls.topologyGetCompleteCpuset(machine->get());
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    const auto number = static_cast<unsigned>(cpu);
    if (CPU_ISSET(cpu, &processors) && calls.bitmapIsset(there, number) != 0) calls.bitmapSet(set.get(), number);
  }
  return calls.setCpubind(machine->get(), set.get(), HWLOC_CPUBIND_THREAD) == 0;
}

bool preferByHwloc(void* address, std::size_t bytes, int node) {
  const auto machine = viewOfMachine();
  if (!machine) return false;
  const HwlocCalls& calls = machine->calls();
  const Handle<BitmapTraits> set(calls.bitmapAlloc());
  if (!set.valid() || calls.bitmapSet(set.get(), static_cast<unsigned>(node)) != 0) return false;
  // Without STRICT other nodes help out when it is full.
  return calls.setAreaMembind(machine->get(), address, bytes, set.get(), HWLOC_MEMBIND_BIND, HWLOC_MEMBIND_BYNODESET) ==
         0;
}

bool preferBySystem(void* address, std::size_t bytes, int node) {
  constexpr int kMostNodes = 1024;
  constexpr int kBits = sizeof(unsigned long) * CHAR_BIT;
  if (node >= kMostNodes) return false;
  std::array<unsigned long, kMostNodes / kBits> mask{};
  mask[static_cast<std::size_t>(node / kBits)] |= 1UL << (node % kBits);
  // The system call itself: libnuma is not everywhere. It reads one bit less than it is told.
  return ::syscall(SYS_mbind, address, bytes, MPOL_PREFERRED, mask.data(), kMostNodes + 1, 0) == 0;
}

/// The system calls need no memory of the host's, so nothing fails for want of it.
template <class F>
bool triedByHwloc(const F& bind) {
  try {
    return bind();
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace

int bindThread(const cpu_set_t& processors) {
  if (triedByHwloc([&] { return bindByHwloc(processors); })) return 0;
  return ::pthread_setaffinity_np(::pthread_self(), sizeof(processors), &processors);
}

bool preferNode(void* address, std::size_t bytes, int node) {
  if (node < 0) return false;
  return triedByHwloc([&] { return preferByHwloc(address, bytes, node); }) || preferBySystem(address, bytes, node);
}

BindingScope::BindingScope() {
  SharedView& view = sharedView();
  const std::lock_guard lock(view.mutex);
  ++view.scopes;
}

BindingScope::~BindingScope() {
  SharedView& view = sharedView();
  std::shared_ptr<const HwlocTopology> last;
  const std::lock_guard lock(view.mutex);
  if (--view.scopes == 0) last = std::exchange(view.topology, nullptr);
}

}  // namespace tutti
