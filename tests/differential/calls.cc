#include "differential/calls.h"

#include "bench/datatypes.h"

namespace differential {
namespace {

ncclResult_t callMessages(const Operation& o, const Caller& c) {
  const std::size_t size = bench::typeSize(o.type);
  ncclResult_t result = ncclSuccess;
  for (const bool receives : {o.receivesFirst, !o.receivesFirst}) {
    for (const Message& message : o.messages) {
      if ((receives ? message.to : message.from) != c.rank) continue;
      const std::size_t count = message.source.bytes / size;
      result = receives ? ncclRecv(c.arena + message.target.offset, count, o.type, message.from, c.comm, c.stream)
                        : ncclSend(c.arena + message.source.offset, count, o.type, message.to, c.comm, c.stream);
      if (result != ncclSuccess && result != ncclInProgress) return result;
    }
  }
  return result;
}

}  // namespace

ncclResult_t call(const Operation& o, const Caller& c) {
  if (o.func == Func::Messages) return callMessages(o, c);
  const auto rank = static_cast<std::size_t>(c.rank);
  const void* const send = c.arena + o.send[rank].offset;
  void* const recv = c.arena + o.recv[rank].offset;
  switch (o.func) {
    case Func::AllReduce:
      return ncclAllReduce(send, recv, o.count, o.type, c.op, c.comm, c.stream);
    case Func::Reduce:
      return ncclReduce(send, recv, o.count, o.type, c.op, o.root, c.comm, c.stream);
    case Func::ReduceScatter:
      return ncclReduceScatter(send, recv, o.count, o.type, c.op, c.comm, c.stream);
    case Func::AllGather:
      return ncclAllGather(send, recv, o.count, o.type, c.comm, c.stream);
    case Func::Broadcast:
      return ncclBroadcast(send, recv, o.count, o.type, o.root, c.comm, c.stream);
    case Func::AlltoAll:
      return ncclAlltoAll(send, recv, o.count, o.type, c.comm, c.stream);
    case Func::Gather:
      return ncclGather(send, recv, o.count, o.type, o.root, c.comm, c.stream);
    case Func::Scatter:
      return ncclScatter(send, recv, o.count, o.type, o.root, c.comm, c.stream);
    case Func::Messages:
      break;
  }
  return ncclInternalError;
}

}  // namespace differential
