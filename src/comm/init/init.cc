#include "comm/init/init.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "base/log.h"
#include "bootstrap/bootstrap.h"
#include "comm/agreement/own_machine.h"
#include "comm/diagnosis/init_stall.h"
#include "comm/ending/ending.h"
#include "comm/ending/watching.h"
#include "comm/init/channels/connect_stage.h"
#include "comm/init/collnet_stage.h"
#include "comm/init/device_stage.h"
#include "comm/init/family_stage.h"
#include "comm/init/graph_stage.h"
#include "comm/init/join_stage.h"
#include "comm/init/machine_stage.h"
#include "comm/init/network_stage.h"
#include "comm/init/peer_stage.h"
#include "comm/init/planning_stage.h"
#include "comm/init/plugin_stage.h"
#include "comm/init/trace_stage.h"
#include "comm/init/transports/transport_stage.h"
#include "comm/state/background.h"
#include "comm/state/communicator.h"
#include "comm/state/peer_wait.h"
#include "trace/comm_counts.h"
#include "trace/points.h"

namespace tutti::comm {

namespace {

/// How long a failed rank waits for word of what made it fail.
constexpr auto kEchoGrace = std::chrono::milliseconds(500);

enum class Stage : std::uint8_t { Kernels, Alloc, Bootstrap, Allgathers, Topo, Graphs, Connections, Rest, Count };

constexpr std::array<const char*, static_cast<std::size_t>(Stage::Count)> kStageNames{
    "kernels", "alloc", "bootstrap", "allgathers", "topo", "graphs", "connections", "rest"};

/// Seconds spent per stage, for the "Init timings" line, and for a trace.
class StageClock {
 public:
  explicit StageClock(std::uint16_t traced) : traced_(traced) {}
  /// Books the time since the last call on `stage`.
  void book(Stage stage) {
    const auto now = SteadyClock::now();
    const auto index = static_cast<std::size_t>(stage);
    seconds_[index] += std::chrono::duration<double>(now - last_).count();
    trace::markSince(last_, trace::Kind::Stage, traced_, kStageNames[index]);
    last_ = now;
  }
  double of(Stage stage) const { return seconds_[static_cast<std::size_t>(stage)]; }
  double total() const { return std::chrono::duration<double>(last_ - start_).count(); }

 private:
  std::uint16_t traced_;
  SteadyClock::time_point start_ = SteadyClock::now();
  SteadyClock::time_point last_ = start_;
  std::array<double, static_cast<std::size_t>(Stage::Count)> seconds_{};
};

void logPhase(const ncclComm& comm, std::string_view what) {
  const CommIdentity& id = comm.identity;
  const std::string& name = comm.config.commName;
  info(kInit, "{} comm {} rank {} nranks {} cudaDev {} nvmlDev {} busId {:x} commId {:#x}{}{} Init {}", id.function,
       fmt::ptr(&comm), id.rank, id.nRanks, id.cudaDevice, id.nvmlDevice, id.busId, id.commId,
       name.empty() ? "" : " commName " + name, id.origin.empty() ? " -" : " " + id.origin + "-", what);
}

/// As it is in effect: what a child has of its parent, and what the environment says, no other line shows.
void logConfig(const ncclComm& comm) {
  const std::string settings = describe(comm.config);
  if (settings.empty()) return;
  info(kEnv, "Comm config of comm {} rank {}: {}; else the defaults", fmt::ptr(&comm), comm.identity.rank, settings);
}

void logTimings(const ncclComm& comm, const StageClock& clock) {
  info(kInit | kProfile,
       "Init timings - {}: rank {} nranks {} total {:.2f} (kernels {:.2f}, alloc {:.2f}, bootstrap "
       "{:.2f}, allgathers {:.2f}, topo {:.2f}, graphs {:.2f}, connections {:.2f}, rest {:.2f})",
       comm.identity.function, comm.identity.rank, comm.identity.nRanks, clock.total(), clock.of(Stage::Kernels),
       clock.of(Stage::Alloc), clock.of(Stage::Bootstrap), clock.of(Stage::Allgathers), clock.of(Stage::Topo),
       clock.of(Stage::Graphs), clock.of(Stage::Connections), clock.of(Stage::Rest));
}

InitStall::Subject initSubject(ncclComm& comm) {
  return {.who = describeComm(comm),
          .function = comm.identity.function,
          .limits = comm.options.stall,
          .describe = [&comm](int rank) {
            const bootstrap::Bootstrap* joined = joinedBootstrap(comm);
            return joined != nullptr ? joined->describe(rank) : fmt::format("rank {}", rank);
          }};
}

Status runStages(ncclComm& comm, const JoinStep& join, StageClock& clock, InitStall& stall) {
  stall.enter("bootstrap");
  TRY(joinBootstrap(comm, join));
  clock.book(Stage::Bootstrap);
  stall.enter("device");
  TRY(openDevice(comm));
  clock.book(Stage::Kernels);
  ASSIGN(const gpu::ContextGuard context, enterDevice(comm));
  stall.enter("network");
  TRY(openNetwork(comm));
  stall.enter("topology");
  ASSIGN(const OwnMachine machine, readOwnMachine(comm));
  placeEngine(comm, machine);
  clock.book(Stage::Topo);
  stall.enter("exchange of facts");
  TRY(meetPeers(comm, machine));
  TRY(shareClocks(comm));
  clock.book(Stage::Allgathers);
  stall.enter("plugins");
  TRY(beginPlugins(comm));
  clock.book(Stage::Rest);
  stall.enter("kernels");
  TRY(loadSharedKernels(comm));
  clock.book(Stage::Kernels);
  stall.enter("graphs");
  makeTransports(comm);
  ASSIGN(const std::shared_ptr<const CommGraphs> graphs, findGraphs(comm, machine));
  clock.book(Stage::Topo);
  // Who relays for others listens before anybody connects: all ranks wait for each other in the agreement.
  TRY(joinRelays(comm));
  stall.enter("agreement");
  ASSIGN(const int nChannels, agreeOnPlanning(comm, *graphs));
  clock.book(Stage::Graphs);
  TRY(buildChannels(comm, *graphs, nChannels));
  TRY(prepareWatch(comm));
  clock.book(Stage::Alloc);
  stall.enter("connections");
  TRY(connectRings(comm));
  stall.enter("collNet");
  TRY(joinCollNet(comm, *graphs));
  clock.book(Stage::Connections);
  stall.enter("end");
  TRY(beginWatch(comm));
  TRY(joinFamily(comm));
  clock.book(Stage::Rest);
  return {};
}

/// A rank that died makes others fail, whose memory and connections then fail for the rest: what fails here may be such
/// an echo, and word of its cause be under way. Waits a moment for it, and prefers it. Peers hear of a failure of our
/// own at once: it may be what they wait for in the same way.
Status causeOf(ncclComm& comm, Status own) {
  if (own.ok() || concernsAllRanks(own) || comm.parts.bootstrap == nullptr) return own;
  if (faultOf(own) == Fault::Own && !comm.abort.raised()) announceFailure(comm, own, lastErrorText(), Fault::Own);
  const Deadline deadline = Deadline::in(kEchoGrace);
  while (!comm.abort.raised() && !deadline.expired()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  return comm.abort.raised() ? comm.abort.status() : own;
}

}  // namespace

Status runInit(ncclComm& comm, const JoinStep& join) {
  traceComm(comm);
  const trace::Within within(comm.progress.traced->number);
  const trace::Span whole(trace::Kind::Stage, comm.progress.traced->number, "init", trace::Takes::Long);
  logPhase(comm, "START");
  logConfig(comm);
  StageClock clock(comm.progress.traced->number);
  const Status status = causeOf(comm, runGuarded([&] {
                                  InitStall stall(initSubject(comm));
                                  const WatchedInit watched(stall);
                                  return runStages(comm, join, clock, stall);
                                }));
  if (!status.ok()) {
    comm.progress.initResult.store(status.code());
    failComm(comm, status);
  } else {
    logPhase(comm, "COMPLETE");
    logTimings(comm, clock);
    logConnections(comm);
    PeerWait::endOfInit(comm);
  }
  comm.progress.starting.store(false, std::memory_order_release);
  return status;
}

}  // namespace tutti::comm
