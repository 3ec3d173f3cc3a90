#include "comm/network/relays.h"

#include <chrono>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/never_destroyed.h"
#include "bootstrap/bootstrap.h"
#include "comm/launch/device_pool.h"
#include "comm/network/network.h"
#include "topo/machine/rank_layout.h"
#include "transport/common/ranks.h"
#include "transport/net/pxn/service.h"

namespace tutti::comm {

namespace {

using Service = net::pxn::RelayService;

/// The ranks of this process by communicator, and services that have outlived theirs.
class ProcessRelays {
 public:
  static ProcessRelays& instance() {
    static NeverDestroyed<ProcessRelays> one;
    return one.get();
  }
  void enter(std::uint64_t comm) {
    const std::lock_guard lock(mutex_);
    ++entries_[comm].ranks;
  }
  void deferFree(std::uint64_t comm, const std::shared_ptr<Service>& service) {
    const std::lock_guard lock(mutex_);
    entries_[comm].services.push_back(service);
  }
  /// What the last rank leaves behind; nothing of others.
  std::vector<std::weak_ptr<Service>> leave(std::uint64_t comm) {
    const std::lock_guard lock(mutex_);
    const auto entry = entries_.find(comm);
    if (entry == entries_.end() || --entry->second.ranks > 0) return {};
    std::vector<std::weak_ptr<Service>> left = std::move(entry->second.services);
    entries_.erase(entry);
    return left;
  }

 private:
  struct Entry {
    int ranks = 0;
    std::vector<std::weak_ptr<Service>> services;
  };
  std::mutex mutex_;
  std::map<std::uint64_t, Entry> entries_;
};

bool stillServes(const std::weak_ptr<Service>& service) {
  const std::shared_ptr<Service> alive = service.lock();
  return alive != nullptr && !alive->finished();
}

void awaitEnd(const std::weak_ptr<Service>& service, Deadline deadline) {
  while (stillServes(service) && !deadline.expired()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (!stillServes(service)) return;
  info(kDestroy | kNet,
       "Other ranks still send through a rank that has left; it goes on for them while this process lives");
}

/// What the service needs of the communicator, for as long as it needs it.
struct Kept {
  std::shared_ptr<PooledDevice> device;
  std::shared_ptr<CommNetwork> network;
};

}  // namespace

std::array<std::byte, 32> relaySecret(const bootstrap::Bootstrap& bootstrap) {
  return bootstrap.keyFor("tutti relay");
}

const topo::PeerInfo* relayOf(const topo::RankLayout& layout, std::span<const topo::PeerInfo> peers, int localRank) {
  const auto ranks = layout.ranksOnNode(layout.nodeOf(layout.rank()));
  if (localRank < 0 || static_cast<std::size_t>(localRank) >= ranks.size()) return nullptr;
  const topo::PeerInfo& self = peers[static_cast<std::size_t>(layout.rank())];
  const topo::PeerInfo& relay = peers[static_cast<std::size_t>(ranks[static_cast<std::size_t>(localRank)])];
  const bool local = transport::sameProcess(self, relay) || self.networkNamespace == relay.networkNamespace;
  const bool good = relay.rank != self.rank && relay.hostHash == self.hostHash && relay.softGpu == self.softGpu;
  return local && good ? &relay : nullptr;
}

Result<std::unique_ptr<RankRelays>> RankRelays::join(const RelayMember& member) {
  std::unique_ptr<RankRelays> relays(new RankRelays(member.bootstrap.commHash()));
  ProcessRelays::instance().enter(relays->commHash_);
  relays->counted_ = true;
  if (!member.relaysForOthers || member.network == nullptr) return relays;
  const auto kept = std::make_shared<Kept>(Kept{member.device, member.network});
  net::pxn::ServiceSetup setup;
  setup.owner = kept;
  setup.net = &member.network->net();
  setup.device = member.device->device.get();
  setup.engine = member.device->engine;
  setup.peers.assign(member.peers.begin(), member.peers.end());
  setup.rank = member.rank;
  setup.secret = relaySecret(member.bootstrap);
  ASSIGN(relays->service_, Service::start(std::move(setup)));
  return relays;
}

RankRelays::~RankRelays() {
  service_.reset();
  if (counted_) ProcessRelays::instance().leave(commHash_);
}

bool RankRelays::serves() const {
  return service_ != nullptr && service_->serves();
}

std::vector<std::string> RankRelays::underWay() const {
  return service_ == nullptr ? std::vector<std::string>() : service_->underWay();
}

void RankRelays::leave() {
  if (service_ != nullptr) {
    ProcessRelays::instance().deferFree(commHash_, service_);
    Service::retire(std::move(service_));
    service_.reset();
  }
  counted_ = false;
  const Deadline deadline = Deadline::in(std::chrono::seconds(kPatienceSeconds));
  for (const auto& service : ProcessRelays::instance().leave(commHash_)) awaitEnd(service, deadline);
}

}  // namespace tutti::comm
