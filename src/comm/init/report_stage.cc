#include "comm/init/report_stage.h"

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/host.h"
#include "base/threads/shortage.h"
#include "bootstrap/bootstrap.h"
#include "comm/settings/comm_settings.h"
#include "comm/settings/version.h"
#include "comm/state/communicator.h"
#include "comm/state/op_tally.h"
#include "comm/state/revocation.h"
#include "gpu/driver.h"
#include "ras/process.h"
#include "ras/registry.h"
#include "topo/machine/peer_info.h"

namespace tutti::comm {

namespace {

constexpr const char* kKeyUse = "ras";
constexpr int kDevices = 64;

ras::LibraryFacts libraryFacts() {
  const Result<const gpu::Driver*> driver = gpu::loadDriver();
  static const std::string version = versionNumber();
  return {version, CUDA_VERSION, CUDA_VERSION, driver.ok() ? driver.value()->version : 0};
}

std::uint64_t bitOf(int device) {
  return device >= 0 && device < kDevices ? std::uint64_t{1} << device : 0;
}

/// What ncclCommGetAsyncError would say, of what takes no lock to read.
ncclResult_t errorOf(const CommProgress& progress, const Abort& abort) {
  if (progress.starting.load()) return ncclInProgress;
  if (const ncclResult_t failed = progress.initResult.load(); failed != ncclSuccess) return failed;
  if (progress.replaced.load()) return ncclSuccess;
  return progress.revocation->begun() ? progress.revocation->result() : abort.status().code();
}

ras::Func countedAs(ApiFunc func) {
  switch (func) {
    case ApiFunc::AllReduce:
      return ras::Func::AllReduce;
    case ApiFunc::Reduce:
      return ras::Func::Reduce;
    case ApiFunc::Broadcast:
      return ras::Func::Broadcast;
    case ApiFunc::AllGather:
      return ras::Func::AllGather;
    case ApiFunc::ReduceScatter:
      return ras::Func::ReduceScatter;
    case ApiFunc::Send:
      return ras::Func::Send;
    case ApiFunc::Recv:
      return ras::Func::Recv;
    case ApiFunc::AlltoAll:
      return ras::Func::AlltoAll;
    case ApiFunc::Gather:
      return ras::Func::Gather;
    case ApiFunc::Scatter:
      return ras::Func::Scatter;
  }
  return ras::Func::AllReduce;
}

/// What a rank has called so far.
void readCalls(const OpTally& tally, ras::RankState& state) {
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < kApiFuncs; ++i) {
    const auto func = static_cast<ApiFunc>(i);
    const std::uint64_t calls = tally.calls(func).operations;
    state.counts[static_cast<std::size_t>(countedAs(func))] = calls;
    all += calls;
  }
  const LastCall last = tally.last();
  if (last.func) state.lastOp = {static_cast<std::int8_t>(countedAs(*last.func)), last.bytes, all, last.ageMs};
}

ras::RankState stateOf(const ncclComm& comm) {
  const CommProgress& progress = comm.progress;
  ras::RankState state;
  state.initState = progress.starting.load() ? ncclInProgress : progress.initResult.load();
  state.asyncError = errorOf(progress, comm.abort);
  state.finalizeCalled = progress.finalized.load();
  state.destroyFlag = progress.destroying.load();
  state.abortFlag = progress.aborted.load() || progress.revocation->begun();
  readCalls(*comm.tally, state);
  return state;
}

/// Those of the ranks' processes that take part, each with all devices that are known; by the addresses at which they
/// listen.
class MetProcesses {
 public:
  explicit MetProcesses(const ncclComm& comm) : key_(comm.parts.bootstrap->keyFor(kKeyUse)) {}

  /// 0: that one takes no part.
  ras::ProcessId add(const topo::PeerInfo& peer) {
    const auto [place, fresh] = members_.try_emplace(peer.rasAddress.text());
    std::optional<ras::Member>& member = place->second;
    if (fresh) member = ras::readContact({peer.rasAddress, peer.rasKey}, key_, peer.rank);
    if (!member) return 0;
    member->facts.pid = peer.pid;
    member->facts.hostHash = peer.hostHash;
    member->facts.cudaDevices |= bitOf(peer.cudaDevice);
    member->facts.nvmlDevices |= bitOf(peer.nvmlDevice);
    return member->facts.id;
  }

  std::vector<ras::Member> all() const {
    std::vector<ras::Member> list;
    for (const auto& [address, member] : members_) {
      if (member) list.push_back(*member);
    }
    return list;
  }

 private:
  std::array<std::byte, 32> key_;
  std::map<std::string, std::optional<ras::Member>> members_;
};

void list(ncclComm& comm) {
  MetProcesses met(comm);
  std::vector<ras::CommMember> members;
  for (const topo::PeerInfo& peer : comm.parts.peers) {
    members.push_back({met.add(peer), peer.cudaDevice, peer.nvmlDevice});
  }
  const topo::PeerInfo& first = comm.parts.peers.front();
  const CommIdentity& id = comm.identity;
  ras::meet(met.all());
  const ras::OwnRank rank{{id.commId, first.hostHash, first.processHash},
                          id.nRanks,
                          id.rank,
                          id.cudaDevice,
                          id.nvmlDevice,
                          comm.config.commName,
                          id.parentId};
  comm.listing = ras::Registry::instance().add(rank, std::move(members), [&comm] { return stateOf(comm); });
}

}  // namespace

void startReports(const ncclComm& comm) {
  ignoringShortage([&comm] {
    const Result<HostIdentity> host = hostIdentity(comm.settings->hostId);
    ras::startProcess(comm.settings->ras, libraryFacts(), host.ok() ? host.value().hash : 0);
  });
}

void offerReports(const ncclComm& comm, topo::PeerInfo& self) {
  const ras::Contact contact = ras::offerContact(comm.parts.bootstrap->keyFor(kKeyUse), self.rank);
  self.rasAddress = contact.address;
  self.rasKey = contact.key;
}

void listForReports(ncclComm& comm) {
  ignoringShortage([&comm] { list(comm); });
}

}  // namespace tutti::comm
