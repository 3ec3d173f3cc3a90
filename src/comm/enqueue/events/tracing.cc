#include "comm/enqueue/events/tracing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <set>

#include "base/hash.h"
#include "comm/launch/prepared_launch.h"
#include "comm/plan/op.h"
#include "comm/plan/plan.h"
#include "comm/plan/plan_context.h"
#include "comm/state/communicator.h"
#include "comm/tuning/log.h"
#include "trace/call.h"
#include "trace/comm_counts.h"
#include "trace/points.h"
#include "trace/session.h"

namespace tutti::comm {

namespace {

constexpr std::size_t kNamed = 8;

std::uint64_t nanoseconds(double microseconds) {
  return microseconds > 0 ? static_cast<std::uint64_t>(microseconds * 1000) : 0;
}

trace::Record recordOf(const ncclComm& comm, trace::Kind kind, std::uint64_t begin, std::uint64_t end) {
  trace::Record record{};
  record.kind = kind;
  record.comm = comm.progress.traced->number;
  record.begin = begin;
  record.end = end;
  return record;
}

bool hasRoot(ApiFunc func) {
  return func == ApiFunc::Reduce || func == ApiFunc::Broadcast || func == ApiFunc::Gather || func == ApiFunc::Scatter;
}

/// What was weighed, in words; made once for equal decisions.
std::uint32_t whyText(ncclComm& comm, const Decision& decision) {
  struct Facts {
    std::uint64_t bytes;
    std::uint32_t inGroup;
    device::Func func;
    device::DevOp op;
    device::Algorithm algorithm;
    device::Protocol protocol;
  };
  static_assert(sizeof(Facts) == 16);
  const Facts facts{decision.request.bytes, decision.request.inGroup,  decision.request.func,
                    decision.request.op,    decision.choice.algorithm, decision.choice.protocol};
  const std::uint64_t of = hashBytes(std::as_bytes(std::span(&facts, 1)));
  auto& kept = comm.progress.traced->whys[of % comm.progress.traced->whys.size()];
  if (kept.of != of) kept = {of, trace::text(describeCandidates(comm.parts.planning->tuning, decision.request))};
  return kept.text;
}

void traceDecision(ncclComm& comm, const Op& op, const Decision& decision, std::uint64_t begin, std::uint64_t end) {
  const Choice& choice = decision.choice;
  trace::Record record = recordOf(comm, trace::Kind::Decision, begin, end);
  record.number = op.traceNumber;
  record.text = whyText(comm, decision);
  record.a = trace::wordOf(trace::DecisionWords{
      static_cast<std::uint8_t>(choice.algorithm), static_cast<std::uint8_t>(choice.protocol),
      static_cast<std::uint8_t>(decision.channelLo), static_cast<std::uint8_t>(decision.channelHi), choice.chunkBytes});
  record.b = nanoseconds(choice.microseconds);
  record.c = decision.request.bytes;
  trace::write(record);
}

}  // namespace

void traceOp(ncclComm& comm, Op& op) {
  trace::CommCounts& counts = *comm.progress.traced;
  const bool message = isMessageFunc(op.func);
  op.traceNumber = ++counts.operations;
  trace::current().comm = counts.number;
  const std::uint64_t when = trace::current().begin != 0 ? trace::current().begin : trace::now();
  trace::Record record = recordOf(comm, trace::Kind::Op, when, when);
  record.number = op.traceNumber;
  record.text = trace::staticText(apiFuncName(op.func).data());
  record.a = op.count * datatypeBytes(op.datatype);
  const std::int32_t peer = isPointToPoint(op.func) || hasRoot(op.func) ? op.root : -1;
  record.b = trace::wordOf(
      trace::OpWords{peer, static_cast<std::uint8_t>(op.datatype), static_cast<std::uint8_t>(message ? 1 : 0), 0});
  record.c = trace::current().call | std::uint64_t{message ? 0 : ++counts.collectives} << 32U;
  trace::write(record);
}

void tracePlan(ncclComm& comm, std::span<const Op> ops, const Plan& plan, std::uint64_t begin) {
  const std::uint64_t end = trace::now();
  // One decision for each collective that is carried out, in the order of the calls.
  auto decision = plan.decisions.begin();
  for (const Op& op : ops) {
    if (isMessageFunc(op.func) || decision == plan.decisions.end()) continue;
    traceDecision(comm, op, *decision++, begin, end);
    begin = end;
  }
  if (begin == end) return;
  trace::Record record = recordOf(comm, trace::Kind::Plan, begin, end);
  record.number = ops.front().traceNumber;
  record.a = ops.size();
  record.b = plan.launches.size();
  record.c = nanoseconds(plan.microseconds());
  trace::write(record);
}

void traceLaunches(ncclComm& comm, std::span<const Op> ops, std::span<const PreparedLaunch> launches,
                   std::uint64_t begin) {
  trace::Record record = recordOf(comm, trace::Kind::Launch, begin, trace::now());
  for (const PreparedLaunch& launch : launches) {
    record.number = ++comm.progress.traced->launches;
    record.text = launch.traced;
    record.a = trace::wordOf(
        trace::LaunchWords{static_cast<std::uint16_t>(launch.args->nWorks), static_cast<std::uint16_t>(launch.block),
                           static_cast<std::uint8_t>(launch.args->firstChannel), static_cast<std::uint8_t>(launch.grid),
                           0, static_cast<std::uint8_t>(launch.shape.func == device::Func::SendRecv ? 1 : 0)});
    record.b = ops.front().traceNumber;
    record.c = ops.size();
    trace::write(record);
  }
}

std::string peersText(std::span<const LinkRequest> links) {
  std::set<int> peers;
  for (const LinkRequest& link : links) peers.insert(link.peer);
  std::string text;
  std::size_t named = 0;
  for (const int peer : peers) {
    if (named++ == kNamed) return text + fmt::format(" and {} more", peers.size() - kNamed);
    text += fmt::format("{}rank {}", text.empty() ? "" : ", ", peer);
  }
  return text;
}

}  // namespace tutti::comm
