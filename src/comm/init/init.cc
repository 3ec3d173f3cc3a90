#include "comm/init/init.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <span>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "base/log.h"
#include "base/threads/cpu_set.h"
#include "bootstrap/bootstrap.h"
#include "comm/connect/channels.h"
#include "comm/diagnosis/stalls.h"
#include "comm/ending/ending.h"
#include "comm/ending/watch.h"
#include "comm/init/affinity.h"
#include "comm/init/net_options.h"
#include "comm/init/planning_stage.h"
#include "comm/init/stages.h"
#include "comm/init/topology_stages.h"
#include "comm/launch/device_pool.h"
#include "comm/launch/launch.h"
#include "comm/network/network.h"
#include "comm/network/relays.h"
#include "comm/plan/plan_context.h"
#include "comm/settings/comm_settings.h"
#include "comm/state/abort_word.h"
#include "comm/state/background.h"
#include "comm/state/communicator.h"
#include "gpu/dma_buf.h"
#include "proxy/engine.h"
#include "topo/machine/rank_layout.h"
#include "transport/net/transport.h"
#include "transport/p2p/transport.h"
#include "transport/shm/transport.h"

namespace tutti::comm {

namespace {

/// How long a failed rank waits for word of what made it fail.
constexpr auto kEchoGrace = std::chrono::milliseconds(500);

enum class Stage : std::uint8_t { Kernels, Alloc, Bootstrap, Allgathers, Topo, Graphs, Connections, Rest, Count };

/// Seconds spent per stage, for the "Init timings" line.
class StageClock {
 public:
  /// Books the time since the last call on `stage`.
  void book(Stage stage) {
    const auto now = SteadyClock::now();
    seconds_[static_cast<std::size_t>(stage)] += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }
  double of(Stage stage) const { return seconds_[static_cast<std::size_t>(stage)]; }
  double total() const { return std::chrono::duration<double>(last_ - start_).count(); }

 private:
  SteadyClock::time_point start_ = SteadyClock::now();
  SteadyClock::time_point last_ = start_;
  std::array<double, static_cast<std::size_t>(Stage::Count)> seconds_{};
};

void logPhase(const ncclComm& comm, std::string_view what) {
  const CommIdentity& id = comm.identity;
  info(kInit, "{} comm {} rank {} nranks {} cudaDev {} nvmlDev {} busId {:x} commId {:#x} - Init {}", id.function,
       fmt::ptr(&comm), id.rank, id.nRanks, id.cudaDevice, id.nvmlDevice, id.busId, id.commId, what);
}

void logTimings(const ncclComm& comm, const StageClock& clock) {
  info(kInit | kProfile,
       "Init timings - {}: rank {} nranks {} total {:.2f} (kernels {:.2f}, alloc {:.2f}, bootstrap "
       "{:.2f}, allgathers {:.2f}, topo {:.2f}, graphs {:.2f}, connections {:.2f}, rest {:.2f})",
       comm.identity.function, comm.identity.rank, comm.identity.nRanks, clock.total(), clock.of(Stage::Kernels),
       clock.of(Stage::Alloc), clock.of(Stage::Bootstrap), clock.of(Stage::Allgathers), clock.of(Stage::Topo),
       clock.of(Stage::Graphs), clock.of(Stage::Connections), clock.of(Stage::Rest));
}

std::string orderOf(std::span<const std::int32_t> ring) {
  constexpr std::size_t kLineLimit = 127;
  std::string order;
  for (const std::int32_t rank : ring) {
    order += fmt::format(" {}", rank);
    if (order.size() > kLineLimit) return order + " ...";
  }
  return order;
}

void logLayout(const ncclComm& comm, const topo::RankChannels& channels) {
  const topo::RankLayout& layout = *comm.parts.layout;
  info(kInit, "comm {} rank {} nRanks {} nNodes {} localRanks {} localRank {} MNNVL 0", fmt::ptr(&comm), layout.rank(),
       layout.nRanks(), layout.nNodes(), layout.localRanks(), layout.localRank());
  for (int c = 0; layout.rank() == 0 && c < channels.size(); ++c) {
    info(kInit, "Channel {:02}/{:02} :{}", c, channels.size(), orderOf(channels.ringOf(c)));
  }
  info(kInit, "{}", topo::treesLine(channels, layout.rank()));
  for (const std::string& line : topo::channelLines(channels, layout.rank())) info(kGraph, "{}", line);
}

/// Told on a thread of the bootstrap, once: the communicator cannot go on without its peer.
void onPeerLost(ncclComm& comm, const bootstrap::PeerLost& lost) {
  if (comm.abort.raised()) return;
  const ncclResult_t code = concernsAllRanks(lost.why) ? lost.why.code() : ncclRemoteError;
  const OwnLastError own;  // published by raise(), unless another failure was first
  const Status why = fail(code, "{}: {}", describeComm(comm), lost.text);
  comm.abort.raise(why, lost.text, lastErrorText());
}

Status joinBootstrap(ncclComm& comm, const std::vector<ncclUniqueId>& ids) {
  bootstrap::JoinOptions options;
  options.ids = ids;
  options.rank = comm.identity.rank;
  options.nRanks = comm.identity.nRanks;
  options.settings = comm.settings->bootstrap;
  options.abort = &comm.abort;
  options.onPeerLost = [&comm](const bootstrap::PeerLost& lost) { onPeerLost(comm, lost); };
  options.onState = [&comm](int rank, std::span<const std::byte> state) { comm.stalls.hear(rank, state); };
  ASSIGN(comm.parts.bootstrap, bootstrap::Bootstrap::join(options));
  noteJoined(comm);
  return {};
}

Status openDevice(ncclComm& comm) {
  ASSIGN(const gpu::Driver* driver, gpu::loadDriver());
  ASSIGN(comm.parts.device, acquireDevice(*driver, comm.identity.cudaDevice, comm.settings->hostKernelsPath));
  ASSIGN(comm.parts.abortWord, AbortWord::create(*comm.parts.device->device, comm.abort));
  return {};
}

/// The first communicator on a device decides for its thread.
void placeEngine(ncclComm& comm, const OwnMachine& machine) {
  if (comm.identity.nRanks == 1) return;
  const Affinity affinity =
      affinityFor(comm.settings->affinity, comm.identity.cudaDevice,
                  processorsNear(machine, static_cast<std::uint64_t>(comm.identity.busId)), ownProcessors());
  if (!affinity.complaint.empty()) info(kEnv, "{}", affinity.complaint);
  if (!affinity.text.empty()) info(kInit, "{}", affinity.text);
  if (affinity.processors) comm.parts.device->engine->runOn(*affinity.processors);
}

/// A lone rank has nobody to reach.
Status openNetwork(ncclComm& comm) {
  if (comm.identity.nRanks == 1) return {};
  const plugin::NetOpening opening{.commId = comm.parts.bootstrap->commHash(),
                                   .trafficClass = comm.config.values.trafficClass,
                                   .secret = comm.parts.bootstrap->keyFor("tutti network")};
  ASSIGN(comm.parts.network, CommNetwork::open(comm.config.netName, opening));
  info(kInit, "Using network {}", comm.parts.network->net().name());
  const gpu::Device& device = *comm.parts.device->device;
  if (comm.settings->gpuDirect.dmaBuf && gpu::exportsDmaBufs(device)) {
    info(kInit, "DMA-BUF is available on GPU device {}", device.ordinal());
    comm.parts.network->offerDmaBufs();
  }
  return {};
}

/// A topology that is written to a file shows what there is, not what was made of it.
Status fuseNetworkDevices(ncclComm& comm, const gpu::Driver& driver) {
  if (!comm.parts.network) return {};
  CommNetwork& network = *comm.parts.network;
  if (!comm.settings->topology.dump.path.empty()) {
    network.reportCollNet();
    return {};
  }
  const auto describe = [&](const std::vector<topo::NetDeviceFacts>& nets) -> Result<std::optional<topo::XmlElement>> {
    ASSIGN(OwnMachine machine, readMachine(driver, comm.settings->topology, nets));
    return std::move(machine.elements);
  };
  TRY(network.fuse(comm.settings->fusion, describe));
  network.reportCollNet();
  return {};
}

std::optional<std::vector<topo::NetDeviceFacts>> nicFacts(const ncclComm& comm) {
  if (!comm.parts.network) return std::nullopt;
  const CommNetwork& network = *comm.parts.network;
  return factsOf(network.devices(), network.usable(), network.collDevices(), network.dmaBufs());
}

Status layOutRanks(ncclComm& comm) {
  CommParts& parts = comm.parts;
  parts.layout = std::make_unique<topo::RankLayout>(comm.identity.rank, parts.peers);
  parts.transports.push_back(
      std::make_unique<p2p::P2pTransport>(*parts.device->device, comm.settings->p2p, parts.device));
  parts.transports.push_back(
      std::make_unique<shm::ShmTransport>(*parts.device->device, comm.settings->shm, parts.device));
  if (parts.network) {
    parts.transports.push_back(
        std::make_unique<net::NetTransport>(*parts.device->device, parts.network->net(), netOptions(comm)));
  }
  return {};
}

/// graphUsageMode 2: graphs and launches are ordered among each other; 0 and 1 leave that to the application, which may
/// then do without any order inside a graph, too.
GraphRules graphRules(ncclComm& comm) {
  const bool mix = comm.config.values.graphUsageMode == 2;
  return {.mix = mix, .orderWithin = mix || comm.config.values.graphStreamOrdering != 0, .holds = &comm.graphs};
}

/// How the engine sees this communicator.
proxy::GroupHooks progressHooks(ncclComm& comm) {
  proxy::GroupHooks hooks;
  // As the watch over kernels saw them a quarter of a second ago at most: a call of the driver could wait for a thread
  // that waits, with a lock of the driver's, for the very kernel that the engine serves. Graphs hold the group.
  hooks.busy = [&launcher = *comm.parts.launcher] { return launcher.launchedUnseen(); };
  hooks.aborted = [&abort = comm.abort] { return abort.raised(); };
  // What was reported names connection, rank, host and cause.
  hooks.failed = [&comm](Status why) { failComm(comm, why); };
  return hooks;
}

StallSubject stallSubject(ncclComm& comm) {
  const CommParts& parts = comm.parts;
  return {.rank = comm.identity.rank,
          .nRanks = comm.identity.nRanks,
          .who = describeComm(comm),
          .device = *parts.device->device,
          .bootstrap = *parts.bootstrap,
          .channels = *parts.channels,
          .launcher = *parts.launcher,
          .relays = parts.relays.get(),
          .peers = parts.peers,
          .board = comm.stalls,
          .connecting = comm.progress.connecting};
}

Status buildChannels(ncclComm& comm, const CommGraphs& graphs) {
  CommParts& parts = comm.parts;
  const gpu::Device& device = *parts.device->device;
  ASSIGN(topo::RankChannels channels, channelsOf(graphs, *parts.layout, static_cast<int>(parts.planning->nChannels())));
  logLayout(comm, channels);
  const ChannelPlan plan{comm.identity.rank, comm.identity.nRanks, std::move(channels), parts.abortWord->onDevice()};
  ASSIGN(parts.channels, ChannelSet::create(device, plan));
  ASSIGN(parts.launcher, Launcher::create(device, graphRules(comm)));
  ASSIGN(parts.progress, parts.device->engine->group(progressHooks(comm)));
  parts.channels->driveBy(*parts.progress);
  if (comm.identity.nRanks > 1) {
    ASSIGN(parts.stalls, StallProbe::create(stallSubject(comm), comm.settings->stallAfter));
  }
  return {};
}

/// Whether the line of any of the ring's connections says so.
bool ringUses(const ChannelSet& channels, std::string_view word) {
  for (const LinkRequest& link : channels.neighbours().ring) {
    for (const ConnectedEnd& end : channels.endsOf(link)) {
      if (end.transport.find(word) != std::string::npos) return true;
    }
  }
  return false;
}

Status runStages(ncclComm& comm, const std::vector<ncclUniqueId>& ids, StageClock& clock) {
  CommParts& parts = comm.parts;
  TRY(joinBootstrap(comm, ids));
  clock.book(Stage::Bootstrap);
  TRY(openDevice(comm));
  clock.book(Stage::Kernels);
  const gpu::Device& device = *parts.device->device;
  ASSIGN(const gpu::ContextGuard context, device.enter());
  TRY(openNetwork(comm));
  TRY(fuseNetworkDevices(comm, device.driver()));
  ASSIGN(const OwnMachine machine, readMachine(device.driver(), comm.settings->topology, nicFacts(comm)));
  placeEngine(comm, machine);
  clock.book(Stage::Topo);
  topo::PeerInfo self = describeSelf(device, *comm.settings, comm.identity.rank, comm.identity.nRanks);
  self.machineHash = machine.hash;
  ASSIGN(parts.peers, gatherPeers(*parts.bootstrap, self));
  if (!comm.settings->allowRanksOfOneDevice) TRY(refuseSharedDevices(parts.peers));
  clock.book(Stage::Allgathers);
  // Before the first kernel of this communicator runs, and before any of its ranks goes on.
  if (sharesDeviceInProcess(parts.peers, comm.identity.rank)) TRY(parts.device->kernels->loadAll());
  clock.book(Stage::Kernels);
  TRY(layOutRanks(comm));
  ASSIGN(const CommGraphs graphs,
         findGraphs({*parts.bootstrap, parts.peers, *parts.layout, comm.settings->topology}, machine));
  parts.nics = graphs.nics;
  if (comm.identity.nRanks > 1) {
    ASSIGN(parts.relays, RankRelays::join({.bootstrap = *parts.bootstrap,
                                           .device = parts.device,
                                           .network = parts.network,
                                           .peers = parts.peers,
                                           .rank = comm.identity.rank,
                                           .relaysForOthers = parts.nics.relaysForOthers}));
  }
  clock.book(Stage::Topo);
  TRY(agreeOnPlanning(comm, graphs));
  clock.book(Stage::Graphs);
  TRY(buildChannels(comm, graphs));
  clock.book(Stage::Alloc);
  TRY(connectRing(connectContext(comm), *parts.channels));
  info(kInit, "Connected all rings, use ring PXN {} GDR {}", ringUses(*parts.channels, "(") ? 1 : 0,
       ringUses(*parts.channels, "/GDRDMA") ? 1 : 0);
  clock.book(Stage::Connections);
  TRY(parts.bootstrap->barrier());
  TRY(KernelWatch::instance().add(comm));
  clock.book(Stage::Rest);
  return {};
}

/// A rank that died makes others fail, whose memory and connections then fail for the rest: what fails here may be such
/// an echo, and word of its cause be under way. Waits a moment for it, and prefers it.
Status causeOf(ncclComm& comm, Status own) {
  if (own.ok() || concernsAllRanks(own) || comm.parts.bootstrap == nullptr) return own;
  const Deadline deadline = Deadline::in(kEchoGrace);
  while (!comm.abort.raised() && !deadline.expired()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  return comm.abort.raised() ? comm.abort.status() : own;
}

}  // namespace

ConnectContext connectContext(ncclComm& comm) {
  return ConnectContext{*comm.parts.bootstrap, comm.parts.peers, comm.parts.transports,
                        comm.parts.planning->tuning.input.slotBytes, comm.parts.proxiedMeshSlots};
}

Status runInit(ncclComm& comm, const std::vector<ncclUniqueId>& ids) {
  logPhase(comm, "START");
  StageClock clock;
  const Status status = causeOf(comm, runGuarded([&] { return runStages(comm, ids, clock); }));
  if (!status.ok()) {
    comm.progress.initResult.store(status.code());
    failComm(comm, status);
  } else {
    logPhase(comm, "COMPLETE");
    logTimings(comm, clock);
  }
  comm.progress.starting.store(false, std::memory_order_release);
  return status;
}

}  // namespace tutti::comm
