// What a trace hears of operations on their way from a call to a launch. For callers that have seen that there is one.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "comm/connect/link_types.h"

struct ncclComm;

namespace tutti::comm {

struct Op;
struct Plan;
struct PreparedLaunch;

/// An operation has been asked for; gives it its number. Used, like the others, by the thread that calls.
void traceOp(ncclComm& comm, Op& op);
/// Operations were planned, since `begin`, and why so.
void tracePlan(ncclComm& comm, std::span<const Op> ops, const Plan& plan, std::uint64_t begin);
/// Their kernels were launched, since `begin`.
void traceLaunches(ncclComm& comm, std::span<const Op> ops, std::span<const PreparedLaunch> launches,
                   std::uint64_t begin);
/// With whom connections are: "rank 1, rank 2".
std::string peersText(std::span<const LinkRequest> links);

}  // namespace tutti::comm
