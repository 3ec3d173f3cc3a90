#include "comm/enqueue/registered_buffers.h"

#include <array>
#include <memory>

#include "comm/connect/channels.h"
#include "comm/init/transports/message_steps.h"
#include "comm/launch/device_pool.h"
#include "comm/launch/graph_refs.h"
#include "comm/plan/plan.h"
#include "comm/plan/plan_context.h"
#include "comm/state/communicator.h"
#include "comm/state/registrations.h"
#include "device/kernels/kernel_name.h"
#include "gpu/address_range.h"
#include "gpu/capture.h"

namespace tutti::comm {

namespace {

struct Buffer {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
};
/// What a work may offer; entries of no bytes are none.
using Offered = std::array<Buffer, 2>;

Buffer bufferOf(const void* data, std::size_t bytes) {
  return {reinterpret_cast<std::uintptr_t>(data), bytes};
}

Offered offeredBy(const device::P2pWork& work, int self) {
  if (work.sendPeer < 0 || work.sendPeer == self || work.sendProtocol != device::Protocol::Simple) return {};
  return {bufferOf(work.send, work.sendBytes)};
}

/// A rank sends on its input, and what it has got and keeps.
Offered offeredBy(const device::CollWork& work, const PlannedLaunch& launch, const CommIdentity& self) {
  const std::size_t block = work.count * device::typeBytes(launch.type);
  const std::size_t all = block * static_cast<std::size_t>(self.nRanks);
  switch (launch.func) {
    case device::Func::Broadcast:
      return {work.root == self.rank ? bufferOf(work.send, block) : bufferOf(work.recv, block)};
    case device::Func::Reduce:
      return {bufferOf(work.send, block)};
    case device::Func::AllGather:
      return {bufferOf(work.send, block), bufferOf(work.recv, all)};
    case device::Func::ReduceScatter:
      return {bufferOf(work.send, all)};
    case device::Func::AllReduce:
      return {bufferOf(work.send, block), bufferOf(work.recv, block)};
    case device::Func::SendRecv:
      break;
  }
  return {};
}

/// All that a network which reduces may read or write there.
Offered usedByCollNet(const device::CollWork& work, const PlannedLaunch& launch, const CommIdentity& self) {
  const std::size_t block = work.count * device::typeBytes(launch.type);
  const std::size_t all = block * static_cast<std::size_t>(self.nRanks);
  return {bufferOf(work.send, launch.func == device::Func::ReduceScatter ? all : block),
          bufferOf(work.recv, launch.func == device::Func::AllGather ? all : block)};
}

/// Who looks for registered memory.
struct Takers {
  bool network = false;
  bool collNet = false;
};

Offered offeredBy(const PlannedLaunch& launch, std::size_t work, const CommIdentity& self, const Takers& takers) {
  if (isCollNet(launch.algorithm)) {
    return takers.collNet ? usedByCollNet(launch.args.coll[work], launch, self) : Offered{};
  }
  if (!takers.network) return {};
  if (launch.func == device::Func::SendRecv) return offeredBy(launch.args.p2p[work], self.rank);
  if (launch.protocol != device::Protocol::Simple) return {};
  return offeredBy(launch.args.coll[work], launch, self);
}

template <class F>
Status forWorks(Plan& plan, const CommIdentity& self, const Takers& takers, const F& f) {
  for (PlannedLaunch& launch : plan.launches) {
    for (std::size_t i = 0; i < launch.nWorks(); ++i) TRY(f(launch, i, offeredBy(launch, i, self, takers)));
  }
  return {};
}

/// Registers the allocations for the graph that is captured.
Status registerForGraph(ncclComm& comm, Plan& plan, const Takers& takers, const gpu::CaptureState& capture) {
  const gpu::Device& device = *comm.parts.device->device;
  Registrations& registrations = *comm.registrations;
  const std::shared_ptr<const void> ranges = registrations.holdForGraph(capture.id);
  bool any = false;
  TRY(forWorks(plan, comm.identity, takers, [&](const PlannedLaunch&, std::size_t, const Offered& offered) -> Status {
    for (const Buffer& buffer : offered) {
      if (buffer.bytes == 0) continue;
      ASSIGN(const gpu::AddressRange range, gpu::rangeOf(device, buffer.begin));
      if (range.kind != gpu::MemoryKind::Device && range.kind != gpu::MemoryKind::Managed) continue;
      any = registrations.addForGraph(range.base, range.bytes, capture.id) || any;
    }
    return {};
  }));
  return any ? comm.graphs->addTo(device, capture.graph, ranges) : Status();
}

}  // namespace

Status tellRegistered(const ncclComm& comm, std::span<Op> ops) {
  if (comm.parts.planning->tuner == nullptr) return {};
  const Registrations& registrations = *comm.registrations;
  const gpu::Device& device = *comm.parts.device->device;
  ASSIGN(const gpu::ContextGuard guard, device.enter());
  for (Op& op : ops) {
    if (isMessageFunc(op.func)) continue;
    ASSIGN(const gpu::CaptureState capture, gpu::captureState(device.driver(), op.stream));
    const std::size_t block = op.count * datatypeBytes(op.datatype);
    const std::size_t all = block * static_cast<std::size_t>(comm.identity.nRanks);
    const auto covered = [&](const void* data, std::size_t bytes) {
      return registrations.cover(reinterpret_cast<std::uintptr_t>(data), bytes, 0);
    };
    op.registered = (capture.capturing && registersGraphs(comm)) ||
                    (covered(op.sendbuff, op.func == ApiFunc::ReduceScatter ? all : block) &&
                     covered(op.recvbuff, op.func == ApiFunc::AllGather ? all : block));
  }
  return {};
}

Status markRegistered(ncclComm& comm, Plan& plan) {
  if (plan.launches.empty()) return {};
  const Takers takers{.network = sendsRegistered(comm) && comm.parts.channels->driven(),
                      .collNet = comm.parts.collNet != nullptr && letsPastSlots(comm)};
  if (!takers.network && !takers.collNet) return {};
  Registrations& registrations = *comm.registrations;
  registrations.tidy();
  const gpu::Device& device = *comm.parts.device->device;
  ASSIGN(const gpu::ContextGuard guard, device.enter());
  ASSIGN(const gpu::CaptureState capture, gpu::captureState(device.driver(), plan.streams.back()));
  if (capture.capturing && registersGraphs(comm)) TRY(registerForGraph(comm, plan, takers, capture));
  return forWorks(plan, comm.identity, takers,
                  [&](PlannedLaunch& launch, std::size_t work, const Offered& offered) -> Status {
                    bool some = false;
                    bool all = true;
                    for (const Buffer& buffer : offered) {
                      if (buffer.bytes == 0) continue;
                      some = true;
                      all = all && registrations.cover(buffer.begin, buffer.bytes, capture.id);
                    }
                    launch.args.registered[work] = some && all ? 1 : 0;
                    return {};
                  });
}

}  // namespace tutti::comm
