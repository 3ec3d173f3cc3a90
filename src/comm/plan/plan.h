// The plan: kernels to launch and connections to have for what a group asked of one communicator. Plain values.
//
//   Planner::plan(context, operations, plan)   collectives by plan_collectives.h, then messages by plan_messages.h
//
// A plan is built in place: the works of a launch are written where its kernel will read them, and a plan that is used
// again keeps its storage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/plan/op.h"
#include "comm/plan/plan_needs.h"
#include "comm/tuning/request.h"
#include "device/work.h"

namespace tutti::comm {

/// What decides a kernel's name.
struct KernelShape {
  device::Func func = device::Func::AllReduce;
  device::Algorithm algorithm = device::Algorithm::Ring;
  device::Protocol protocol = device::Protocol::Simple;
  device::DevOp op = device::DevOp::Sum;  ///< Sum, or that of one of the works
  ncclDataType_t type = ncclInt8;         ///< of the kernel: ncclInt8 for everything that only moves bytes
};

/// One kernel: its name's parts, its shape, and its works.
struct PlannedLaunch : KernelShape {
  /// Leaves the works as they are: few of so many are ever used.
  explicit PlannedLaunch(const KernelShape& kernel) : KernelShape(kernel) { args.nWorks = 0; }

  unsigned firstChannel = 0;
  unsigned nChannels = 1;   ///< blocks
  unsigned nThreads = 1;    ///< per block
  double latencyUs = 0;     ///< estimate: of the slowest work, whatever its size
  double transferUs = 0;    ///< estimate: what the bytes of all works add to that
  device::KernelArgs args;  ///< its works, `coll` or, for Func::SendRecv, `p2p`; the rest is filled at launch

  std::size_t nWorks() const { return args.nWorks; }
  std::span<const device::CollWork> colls() const { return {args.coll, func == device::Func::SendRecv ? 0 : nWorks()}; }
  std::span<const device::P2pWork> messages() const {
    return {args.p2p, func == device::Func::SendRecv ? nWorks() : 0};
  }
  void add(const device::CollWork& work) {
    args.registered[args.nWorks] = 0;
    args.coll[args.nWorks++] = work;
  }
  void add(const device::P2pWork& work) {
    args.registered[args.nWorks] = 0;
    args.p2p[args.nWorks++] = work;
  }
  /// Adds channels [lo, hi] and a demand for threads. Before the first work they replace what was there.
  void widen(unsigned lo, unsigned hi, unsigned threads);
};

/// What was decided for one collective, for the log.
struct Decision {
  Request request;
  Choice choice;
  unsigned channelLo = 0;
  unsigned channelHi = 0;
};

/// Everything to be done for one group.
struct Plan : PlanNeeds {
  std::vector<PlannedLaunch> launches;  ///< in this order, all on one stream
  std::vector<CUstream_st*> streams;    ///< the application's, without repetition, in order of appearance
  CUevent_st* launchEvent = nullptr;    ///< recorded there when the first launch may begin; null: none
  std::vector<Decision> decisions;      ///< one for each collective that is carried out, in call order

  /// Estimate for the whole group: launches run one after another. -1 where nothing is to be done.
  double microseconds() const;
  /// As if newly made, but that storage for a usual group is kept.
  void clear();
};

}  // namespace tutti::comm
