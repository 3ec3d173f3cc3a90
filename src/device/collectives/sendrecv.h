// Point-to-point rounds. A block is two crews: one sends, one receives, each goes through the works at its own pace, so
// that a rank that waits for a message never keeps the peer of another waiting.
//
// A message is spread over the channels of its work like the elements of a collective. A message of 0 bytes takes one
// slot of the first channel: send and receive still meet. Each message has a protocol of its own, LL or Simple.
//
// Where connections share slots, a crew that receives asks for them before it waits: in the order in which it will
// receive, as many as there are, also for messages of works to come. Whoever fills them knows of nothing else. Where
// the network can write to the receive buffers, the crew asks for content in place, and no slot is taken.
#pragma once

#include "device/collectives/message_steps.h"
#include "device/prims/prims.h"
#include "device/prims/recv_requests.h"
#include "device/prims/stamp.h"
#include "device/recv_sequence.h"

namespace tutti::device {

template <Protocol kProtocol>
using BytePrims = PrimsOf<kProtocol, std::int8_t, CopyOp<std::int8_t>, MessageFan>;

template <Protocol kProtocol>
TUTTI_DEVICE void sendPart(BytePrims<kProtocol>& prims, const SendConn& conn, const std::int8_t* data,
                           std::uint64_t bytes) {
  if constexpr (simt::kPulls && kProtocol == Protocol::Simple) {
    const std::uint64_t step = stepBytes(conn, bytes);
    for (std::uint64_t done = 0; done < bytes; done += step) prims.send(data + done, smaller(step, bytes - done));
  } else {
    prims.send(data, bytes);
  }
}

template <Protocol kProtocol>
TUTTI_DEVICE void sendMessage(const Crew& crew, const SendConn* peers, const P2pWork& work, unsigned channel) {
  const Part part = messagePart(work, work.sendBytes, channel);
  const auto* data = static_cast<const std::int8_t*>(work.send);
  BytePrims<kProtocol> prims(crew, nullptr, &peers[work.sendPeer], {}, false);
  if (part.count > 0) sendPart<kProtocol>(prims, peers[work.sendPeer], data + part.begin, part.count);
  if (work.sendBytes == 0 && channel == work.channelLo) prims.sendEmpty();
  if constexpr (kProtocol == Protocol::Simple) {
    prims.finishUnread();
  } else {
    prims.finish();
  }
}

/// Waits until everything that was sent has been read: some of it may have been offered where it lies. Once aborted:
/// withdraws that.
TUTTI_DEVICE void awaitReaders(const Crew& crew, const KernelArgs& args, unsigned channel) {
  bool alive = crew.thread.loadRelaxedSys(&crew.shared->aborted) == 0;
  for (unsigned i = 0; i < args.nWorks && crew.group.rank == 0; ++i) {
    const P2pWork& work = args.p2p[i];
    if (work.sendPeer < 0 || work.sendPeer == args.comm->rank || work.sendProtocol != Protocol::Simple) continue;
    if (channel < work.channelLo || channel > work.channelHi) continue;
    const SendConn& conn = args.comm->channels[channel].sendTo(ConnKind::Mesh, work.sendPeer);
    if (conn.pull.addresses == nullptr || (conn.pull.registeredOnly != 0 && args.registered[i] == 0)) continue;
    const std::uint64_t sent = crew.thread.loadRelaxedSys(conn.stepOf(Protocol::Simple));
    const auto read = [&] { return crew.thread.loadAcquireSys(conn.headOf(Protocol::Simple)) == sent; };
    alive = alive && simt::spinUntil(crew.thread, crew.abortWord, read);
    if (!alive) withdraw(crew.thread, conn);
  }
}

/// Whether this rank receives on the channel by this work.
TUTTI_DEVICE bool receives(const KernelArgs& args, const P2pWork& work, unsigned channel) {
  return work.recvPeer >= 0 && work.recvPeer != args.comm->rank && channel >= work.channelLo &&
         channel <= work.channelHi;
}

/// How far the crew has come: what it is done with may be asked for again.
struct Received {
  std::uint32_t slots;   ///< shared ones, modulo 2^32
  const RecvConn* conn;  ///< the connection that it receives from …
  std::uint64_t step;    ///< … and of which step, where the connection does not say so itself
};

/// Asks for the content of the message of one work, of which `end` is the end and `most` bytes are a step, from where
/// the crew stands, as long as there are places for it; false: there are no more.
TUTTI_DEVICE bool askFor(simt::Thread t, const RecvConn& conn, const P2pWork& work, RecvRequests& at,
                         const Received& received, const std::int8_t* end, std::uint64_t most) {
  std::uint64_t step = t.loadRelaxedSys(conn.shared.asked);
  bool all = false;
  TUTTI_NO_UNROLL
  while (!all) {
    const auto bytes = static_cast<std::uint32_t>(smaller(at.left, most));
    AskedFor place{};
    if constexpr (simt::kPulls) {
      const auto done = received.conn == &conn ? received.step : t.loadRelaxedSys(conn.stepOf(Protocol::Simple));
      if (!hasWords(step, done)) break;
    }
    if (!findPlace(conn, at, received.slots, end - at.left, bytes, place)) break;
    at.left -= bytes;
    all = at.left == 0;
    ask(t, conn, step++, place, askedPlace(place.slot, work.recvOrder, all), bytes);
  }
  t.storeRelaxedSys(conn.shared.asked, step);
  return all;
}

/// Asks for as much as there are places for. For one thread.
TUTTI_DEVICE void askAhead(const Crew& crew, const KernelArgs& args, unsigned channel, const Received& received) {
  RecvRequests& at = crew.shared->requests;
  if (at.knows == 0) at.slots = received.slots, at.knows = 1;
  for (; at.work < args.nWorks; ++at.work, at.begun = 0) {
    const P2pWork& work = args.p2p[at.work];
    if (!receives(args, work, channel) || work.recvProtocol != Protocol::Simple) continue;
    const RecvConn& conn = args.comm->channels[channel].recvFrom(ConnKind::Mesh, work.recvPeer);
    if (conn.shared.taken == nullptr) continue;
    const Part part = messagePart(work, work.recvBytes, channel);
    if (at.begun == 0) at.left = part.count;
    const bool nothing = work.recvBytes == 0 && channel == work.channelLo;  // takes a slot all the same
    if (at.left == 0 && !nothing) continue;
    at.begun = 1;
    const auto* const end = static_cast<const std::int8_t*>(work.recv) + part.end();
    if (!askFor(crew.thread, conn, work, at, received, end, stepBytes(conn, part.count))) return;
  }
}

template <Protocol kProtocol>
TUTTI_DEVICE void recvMessage(const Crew& crew, const KernelArgs& args, const P2pWork& work, unsigned channel) {
  const RecvConn& conn = args.comm->channels[channel].recvFrom(ConnKind::Mesh, work.recvPeer);
  const Part part = messagePart(work, work.recvBytes, channel);
  auto* data = static_cast<std::int8_t*>(work.recv) + part.begin;
  BytePrims<kProtocol> prims(crew, &conn, nullptr, {}, simt::streamingPays(work.recvBytes));
  const bool nothing = work.recvBytes == 0 && channel == work.channelLo;
  if constexpr (kProtocol == Protocol::Simple) {
    // Slot by slot, also where there is none to ask for: a loop around another one costs registers.
    const std::uint64_t step = stepBytes(conn, part.count);
    std::uint64_t left = part.count;
    for (bool first = nothing; left > 0 || first; first = false) {
      if (conn.shared.taken != nullptr && crew.group.rank == 0) {
        askAhead(crew, args, channel, {prims.sharedTaken(), &conn, prims.recvStep()});
      }
      const std::uint64_t n = smaller(left, step);
      prims.recvSlot(data, n);
      data += n;
      left -= n;
    }
  } else {
    if (part.count > 0) prims.recv(data, part.count);
    if (nothing) prims.recvEmpty();
  }
  prims.finish();
}

TUTTI_DEVICE void copyToSelf(const Crew& crew, const P2pWork& work, unsigned channel) {
  const Part part = messagePart(work, smaller(work.sendBytes, work.recvBytes), channel);
  if (work.send == work.recv) return;
  simt::copyBytes(crew.group, static_cast<std::byte*>(work.recv) + part.begin,
                  static_cast<const std::byte*>(work.send) + part.begin, part.count,
                  simt::streamingPays(work.sendBytes));
}

/// All messages this rank sends in the launch, and its copies to itself.
TUTTI_DEVICE void sendMessages(Crew crew, const KernelArgs& args, unsigned channel) {
  const CommView& comm = *args.comm;
  for (unsigned i = 0; i < args.nWorks; ++i) {
    const P2pWork& work = args.p2p[i];
    if (work.sendPeer < 0 || channel < work.channelLo || channel > work.channelHi) continue;
    const SendConn* peers = comm.channels[channel].send[static_cast<int>(ConnKind::Mesh)];
    if constexpr (simt::kPulls) crew.registered = args.registered[i] != 0;
    stampBegin(crew, args, i, 0);
    if (work.sendPeer == comm.rank) {
      copyToSelf(crew, work, channel);
    } else if (work.sendProtocol == Protocol::LL) {
      sendMessage<Protocol::LL>(crew, peers, work, channel);
    } else {
      sendMessage<Protocol::Simple>(crew, peers, work, channel);
    }
    stampEnd(crew, args, i, 0);
  }
  // At the end: a reader that is late keeps no message to others.
  if constexpr (simt::kPulls) awaitReaders(crew, args, channel);
}

/// All messages this rank receives in the launch.
TUTTI_DEVICE void recvMessages(const Crew& crew, const KernelArgs& args, unsigned channel) {
  if (crew.group.rank == 0) crew.shared->requests = {};
  for (unsigned i = 0; i < args.nWorks; ++i) {
    const P2pWork& work = args.p2p[i];
    if (!receives(args, work, channel)) continue;
    stampBegin(crew, args, i, 1);
    if (work.recvProtocol == Protocol::LL) {
      recvMessage<Protocol::LL>(crew, args, work, channel);
    } else {
      recvMessage<Protocol::Simple>(crew, args, work, channel);
    }
    stampEnd(crew, args, i, 1);
  }
}

}  // namespace tutti::device
