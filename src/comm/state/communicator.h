// The communicator: a short list of parts with one owner each. Only comm/ and api/ see it whole; everybody else gets
// the part that is needed. Who uses a part includes its header.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ranks/abort.h"
#include "base/status.h"
#include "comm/settings/config.h"
#include "comm/settings/stall_limits.h"
#include "device/conn_view.h"
#include "gpu/kernel_source.h"
#include "nccl.h"

struct CUfunc_st;

namespace tutti::bootstrap {
class Bootstrap;
}
namespace tutti::gpu {
class MemoryLedger;
}
namespace tutti::plugin {
class EventSink;
}
namespace tutti::proxy {
class ProgressGroup;
class ProgressTask;
}  // namespace tutti::proxy
namespace tutti::ras {
class Listing;
}
namespace tutti::topo {
class RankLayout;
struct PeerInfo;
}  // namespace tutti::topo
namespace tutti::trace {
struct CommCounts;
}
namespace tutti::transport {
class Transport;
}

namespace tutti::comm {

class AbortWord;
class AwaitedPeers;
class BackgroundTask;
class Births;
class CallExchange;
class CallGate;
class CircleBoard;
class ChannelEvents;
class ChannelSet;
class CommCollNet;
class CommNetwork;
class DepartureWatch;
class GraphRefs;
class Launcher;
class LostPeer;
class KernelWait;
class RankRelays;
class RedOpTable;
class Registrations;
class Residence;
class Revocation;
class RevokedPeers;
class OpTally;
class StallBoard;
class StallProbe;
struct Membership;
struct PlanContext;
struct PooledDevice;
struct CommSettings;

/// What a communicator is called in messages; constant from its first moment on, but for the number of a child.
struct CommIdentity {
  int rank = 0;
  int nRanks = 1;
  int cudaDevice = 0;
  int nvmlDevice = -1;  ///< number that nvidia-smi gives the device, -1: unknown
  std::int64_t busId = 0;
  std::uint64_t commId = 0;    ///< hash of the unique id; of a child: Bootstrap::commHash(), known before its init
  std::string function;        ///< the API function that made it
  std::string origin;          ///< of a child: "parent 0x… childCount …", for its log lines
  std::uint64_t parentId = 0;  ///< of a child: its parent's commId, where this rank is of it
};

/// What is asked of its settings at every step; constant like its name.
struct CommOptions {
  milliseconds timeout{0};      ///< for word of peers, and for kernels that only they hold up
  milliseconds peerTimeout{0};  ///< silence that counts as death
  StallLimits stall;            ///< of operations and of stages of its init
  milliseconds reportAfter{0};  ///< in a call of all ranks before those who have not come are named; 0: for ever
  bool allowRanksOfOneDevice = true;
  bool checkPointers = false;  ///< buffers of calls are checked to be memory of its device
  bool checkOverlap = true;    ///< and not to overlap but in place
  bool checkCalls = false;     ///< ranks compare their collectives before these are launched
  bool connectAtInit = false;  ///< what collectives may use
  bool memoryManaged = true;   ///< its memory may be given back for a while
  bool remoteDomain = true;    ///< its kernels run in the remote memory synchronization domain
  gpu::KernelSource kernels;
};

/// A kernel by name and as the driver knows it.
struct LoadedKernel {
  std::string name;
  CUfunc_st* function = nullptr;
  std::uint32_t traced = 0;  ///< its name in a trace
};

/// What init builds, in this order, and destruction takes down in reverse: the tie to the peers goes last, so that they
/// do not take a slow farewell for a death.
struct CommParts {
  CommParts();
  CommParts(CommParts&& other) noexcept;
  ~CommParts();
  /// The host leaves the connections alone from now on.
  void stopProgress();
  /// The host looks whether there is something to do for the connections. Any thread.
  void wakeProgress() const;
  /// The host has nothing to do for the connections, or leaves them alone after an abort.
  bool progressRests() const;
  /// Some connections that the host drives are no relative's as well.
  bool drivesAlone() const;
  /// What the host does for collectives that run in the network; null: nothing, or not on this rank.
  const proxy::ProgressTask* collNetTask() const;
  /// No collective runs in the network any more; see CommCollNet::close().
  void leaveCollNet();
  /// Nothing is planned any more: the tuner plugin, if there is one, hears that it is not asked again.
  void leaveTuner();

  std::unique_ptr<bootstrap::Bootstrap> bootstrap;
  std::shared_ptr<PooledDevice> device;
  std::unique_ptr<AbortWord> abortWord;
  std::vector<topo::PeerInfo> peers;
  std::unique_ptr<topo::RankLayout> layout;
  std::shared_ptr<CommNetwork> network;  ///< null: a lone rank needs none; others may send through this rank longer
  std::vector<std::unique_ptr<transport::Transport>> transports;
  std::unique_ptr<RankRelays> relays;  ///< null: a lone rank
  std::unique_ptr<PlanContext> planning;
  device::SlotBytes proxiedMeshSlots{};          ///< of connections for messages over the network
  std::shared_ptr<plugin::EventSink> events;     ///< null: nobody listens; open events and graphs keep it longer
  std::shared_ptr<ChannelEvents> channelEvents;  ///< null: nobody has wanted to hear of channels so far
  std::unique_ptr<ChannelSet> channels;
  std::unique_ptr<CommCollNet> collNet;  ///< null: collectives do not run in the network
  std::unique_ptr<Launcher> launcher;
  std::unique_ptr<proxy::ProgressGroup> progress;  ///< the host's part in the connections; asks the launcher
  std::unique_ptr<StallProbe> stalls;              ///< null: a lone rank waits for nobody
  std::shared_ptr<DepartureWatch> departures;      ///< the same; shared, for only the room above knows how to end it
  std::map<std::uint32_t, LoadedKernel> kernels;   ///< those used so far, by what they do (comm_work.cc)
};

/// What changes while a communicator is used. `task` under `mutex`; the rest atomic.
struct CommProgress {
  static constexpr std::uint16_t kMessagesAlone = 0x100;
  std::mutex mutex;                                   ///< task, joined
  std::shared_ptr<BackgroundTask> task;               ///< work of a non-blocking call, null if none is under way
  std::atomic<bool> starting{true};                   ///< made, but its init has not run to its end
  std::atomic<ncclResult_t> initResult{ncclSuccess};  ///< once not starting: what this rank's own init came to
  bootstrap::Bootstrap* joined = nullptr;  ///< CommParts::bootstrap, for who cannot wait until a stuck init leaves
  std::atomic<bool> finalized{false};
  std::atomic<bool> destroying{false};        ///< its ncclCommDestroy has begun, and waits perhaps
  std::unique_ptr<Revocation> revocation;     ///< never null
  std::atomic<const char*> pending{nullptr};  ///< the call that goes on in the background, if it has a name
  std::atomic<int> children{0};               ///< how many it was asked for
  std::atomic<bool> replaced{false};          ///< a shrink has given it up and made another one: that is no failure
  std::atomic<bool> ending{false};            ///< somebody frees it: nobody else may
  std::atomic<bool> aborted{false};           ///< by ncclCommAbort
  std::atomic<std::uint64_t> opCount{0};
  std::atomic<const char*> connecting{nullptr};  ///< the operation whose call waits to be connected with peers
  std::atomic<std::uint16_t> connectingCall{0};  ///< its first ApiFunc, and kMessagesAlone if it has no collective
  std::shared_ptr<AwaitedPeers> awaited;         ///< whom that waits for; never null
  std::atomic<std::uint64_t> caller{0};          ///< the thread (threadNumber()) that has called last, or made it
  std::unique_ptr<trace::CommCounts> traced;     ///< for this rank's trace; never null; the calling thread's
  std::shared_ptr<KernelWait> kernels;           ///< while the watch sees them run; its thread's
};

}  // namespace tutti::comm

/// The object behind ncclComm_t. Used by one thread at a time, except for abort and progress, which any thread may ask.
struct ncclComm {
  static constexpr std::uint64_t kMagic = 0x0280028002800280ULL;

  ncclComm(tutti::comm::CommIdentity who, tutti::comm::Config configuration,
           std::shared_ptr<const tutti::comm::CommSettings> process, tutti::comm::CommOptions asked);
  ~ncclComm();

  std::uint64_t magicFirst = kMagic;
  tutti::comm::CommIdentity identity;
  const tutti::comm::Config config;
  /// What the environment said when it was made; its init changes it where a plugin has set something (obeyPlugins()).
  std::shared_ptr<const tutti::comm::CommSettings> settings;
  tutti::comm::CommOptions options;  ///< of `settings`, and changed with them
  tutti::Abort abort;
  const std::unique_ptr<tutti::comm::LostPeer> lostPeer;
  const std::shared_ptr<tutti::comm::Births> births;  ///< of its children, one of which may outlive it
  const std::unique_ptr<tutti::comm::CallGate> gate;
  const std::unique_ptr<tutti::comm::RedOpTable> redOps;
  const std::unique_ptr<tutti::comm::Registrations> registrations;  ///< of the application's buffers
  const std::unique_ptr<tutti::comm::GraphRefs> graphs;             ///< that contain its operations
  tutti::comm::CommProgress progress;
  const std::shared_ptr<tutti::gpu::MemoryLedger> memory;   ///< its own
  const std::unique_ptr<tutti::comm::Residence> residence;  ///< whether its connections have memory
  const std::unique_ptr<tutti::comm::OpTally> tally;        ///< what it has done
  const std::unique_ptr<tutti::comm::StallBoard> stalls;    ///< what peers say of themselves
  const std::unique_ptr<tutti::comm::CircleBoard> circles;  ///< the same of calls behind other communicators' calls
  const std::unique_ptr<tutti::comm::CallExchange> calls;   ///< its collectives, and what peers say of theirs
  const std::unique_ptr<tutti::comm::RevokedPeers> revokedPeers;
  std::unique_ptr<tutti::comm::Membership> membership;  ///< in a family; never null
  tutti::comm::CommParts parts;
  std::unique_ptr<tutti::ras::Listing> listing;  ///< in reports on the job; null: not yet, or not any more
  std::uint64_t magicLast = kMagic;
};

namespace tutti::comm {

/// Whose an error is of which a communicator fails.
enum class Fault : std::uint8_t {
  Own,    ///< this rank's: its peers hear of it with its name in front
  Other,  ///< another rank's or the network's, as the error says
};
/// As most errors say by their code.
inline Fault faultOf(Status why) {
  return why.code() == ncclRemoteError ? Fault::Other : Fault::Own;
}

/// Wrong usage that is met on a connection is its peer's: that one has left, or has called something else.
inline Fault faultOnConnection(Status why) {
  return why.code() == ncclInvalidUsage ? Fault::Other : faultOf(why);
}

/// Marks the communicator as failed with `why`, the calling thread's last error, and wakes everything that waits on its
/// behalf, on all peers and here.
void failComm(ncclComm& comm, Status why, Fault fault);
inline void failComm(ncclComm& comm, Status why) {
  failComm(comm, why, faultOf(why));
}

/// The error of a communicator where `what` waits for a rank that has left: names both, and what to do. To fail with as
/// faultOnConnection() says.
Status failedByDeparture(const ncclComm& comm, int rank, const std::string& what);

/// Tells the peers of a failure with that text, where no other one was told before. The communicator itself goes on.
void announceFailure(ncclComm& comm, Status why, const std::string& text, Fault fault);

/// The bootstrap, also while an init that is stuck has not handed it over; null before there is one. Any thread.
bootstrap::Bootstrap* joinedBootstrap(ncclComm& comm);

/// What the abort of a communicator says that its application has aborted.
inline constexpr const char* kAbortedHere = "the communicator was aborted by ncclCommAbort";
/// The same of ncclCommRevoke.
inline constexpr const char* kRevokedHere = "the communicator was revoked by ncclCommRevoke";

/// Whether an error says that the ranks were started with arguments that do not fit together: then it has the same
/// code on all of them, while any other failure of one rank is an ncclRemoteError to its peers.
inline bool concernsAllRanks(Status why) {
  return why.code() == ncclInvalidArgument || why.code() == ncclInvalidUsage;
}

/// "rank 3/8 on host gpu07, device 3", for messages.
std::string describeComm(const ncclComm& comm);

}  // namespace tutti::comm
