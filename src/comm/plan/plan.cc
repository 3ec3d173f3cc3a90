#include "comm/plan/plan.h"

#include <algorithm>

namespace tutti::comm {

namespace {

/// More than this is not kept for a group that may never come again: a launch takes 4 KB.
constexpr std::size_t kLaunchesKept = 16;
constexpr std::size_t kEntriesKept = 4096;

template <class T>
void empty(std::vector<T>& list, std::size_t kept) {
  list.clear();
  if (list.capacity() > kept) list.shrink_to_fit();
}

}  // namespace

void PlannedLaunch::widen(unsigned lo, unsigned hi, unsigned threads) {
  if (nWorks() == 0) {
    firstChannel = lo;
    nChannels = hi - lo + 1;
    nThreads = threads;
    return;
  }
  const unsigned first = std::min(firstChannel, lo);
  const unsigned last = std::max(firstChannel + nChannels - 1, hi);
  firstChannel = first;
  nChannels = last - first + 1;
  nThreads = std::max(nThreads, threads);
}

double Plan::microseconds() const {
  if (launches.empty()) return -1;
  double sum = 0;
  for (const PlannedLaunch& launch : launches) sum += launch.latencyUs + launch.transferUs;
  return sum;
}

void Plan::clear() {
  launchEvent = nullptr;
  usesRing = false;
  usesTree = false;
  usesPat = false;
  usesCollNetDirect = false;
  usesCollNetChain = false;
  empty(meshPeers, kEntriesKept);
  empty(sendPeers, kEntriesKept);
  empty(recvPeers, kEntriesKept);
  empty(launches, kLaunchesKept);
  empty(streams, kEntriesKept);
  empty(decisions, kEntriesKept);
}

}  // namespace tutti::comm
