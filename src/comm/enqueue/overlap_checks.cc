#include "comm/enqueue/overlap_checks.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/log.h"
#include "comm/state/communicator.h"

namespace tutti::comm {

namespace {

/// What a call reads and writes on one rank, in blocks of op.count elements, and where its in-place form has the
/// smaller buffer within the larger one.
struct Shape {
  std::size_t send = 0;  ///< 0: not used on this rank
  std::size_t recv = 0;
  bool hasInPlace = true;
  std::string_view inPlace;  ///< in words
};

Shape shapeOf(const Op& op, const CommIdentity& who) {
  const auto all = static_cast<std::size_t>(who.nRanks);
  const bool root = op.root == who.rank;
  constexpr std::string_view kSame = "sendbuff == recvbuff";
  switch (op.func) {
    case ApiFunc::AllReduce:
      return {1, 1, true, kSame};
    case ApiFunc::Reduce:
      return {1, std::size_t{root}, true, kSame};
    case ApiFunc::Broadcast:
      return {std::size_t{root}, 1, true, kSame};
    case ApiFunc::AllGather:
      return {1, all, true, "sendbuff == recvbuff + rank * sendcount"};
    case ApiFunc::ReduceScatter:
      return {all, 1, true, "recvbuff == sendbuff + rank * recvcount"};
    case ApiFunc::Gather:
      return {1, root ? all : 0, true, "sendbuff == recvbuff + root * count"};
    case ApiFunc::Scatter:
      return {root ? all : 0, 1, true, "recvbuff == sendbuff + root * count"};
    case ApiFunc::AlltoAll:
      return {all, all, false, ""};
    case ApiFunc::Send:
    case ApiFunc::Recv:
      return {};
  }
  return {};
}

struct Range {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
  bool overlaps(const Range& other) const {
    return begin <= other.begin ? other.begin - begin < bytes : begin - other.begin < other.bytes;
  }
  std::string text() const { return fmt::format("{:#x} to {:#x}", begin, begin + bytes); }
};

/// Whether the smaller one is this rank's block of the larger one.
bool isInPlace(const Shape& shape, const Range& send, const Range& recv, int rank, std::uint64_t blockBytes) {
  if (!shape.hasInPlace) return false;
  const std::uint64_t ahead = static_cast<std::uint64_t>(rank) * blockBytes;
  if (shape.recv > shape.send) return send.begin == recv.begin + ahead;
  if (shape.send > shape.recv) return recv.begin == send.begin + ahead;
  return send.begin == recv.begin;
}

}  // namespace

Status checkOverlap(const ncclComm& comm, const Op& op) {
  if (!comm.options.checkOverlap || comm.identity.nRanks == 1) return {};
  const Shape shape = shapeOf(op, comm.identity);
  const std::uint64_t block = op.count * datatypeBytes(op.datatype);
  if (shape.send == 0 || shape.recv == 0 || block == 0) return {};
  if (op.sendbuff == nullptr || op.recvbuff == nullptr) return {};
  const Range send{reinterpret_cast<std::uintptr_t>(op.sendbuff), shape.send * block};
  const Range recv{reinterpret_cast<std::uintptr_t>(op.recvbuff), shape.recv * block};
  if (!send.overlaps(recv) || isInPlace(shape, send, recv, comm.identity.rank, block)) return {};
  const std::string allowed = shape.hasInPlace ? fmt::format("only in place, {}", shape.inPlace)
                                               : "not at all, for this function has no in-place form";
  return fail(ncclInvalidArgument,
              "{} : sendbuff ({}) and recvbuff ({}) overlap ({}); they may do so {}. TUTTI_CHECK_OVERLAP=0 turns this "
              "check off; the result is undefined then",
              apiFuncName(op.func), send.text(), recv.text(), describeComm(comm), allowed);
}

}  // namespace tutti::comm
