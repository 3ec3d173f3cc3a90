// Point-to-point rounds. A block is two crews: one sends, one receives, each goes through the works at its own pace, so
// that a rank that waits for a message never keeps the peer of another waiting.
//
// A message is spread over the channels of its work like the elements of a collective. A message of 0 bytes takes one
// slot of the first channel: send and receive still meet. Each message has a protocol of its own, LL or Simple.
#pragma once

#include "device/prims.h"

namespace tutti::device {

template <Protocol kProtocol>
using BytePrims = PrimsOf<kProtocol, std::int8_t, CopyOp<std::int8_t>>;

/// The share of a channel in a message.
TUTTI_DEVICE Part messagePart(const P2pWork& work, std::uint64_t bytes, unsigned channel) {
  return channelPart(bytes, 1, work.channelHi - work.channelLo + 1u, channel - work.channelLo);
}

template <Protocol kProtocol>
TUTTI_DEVICE void sendMessage(const Crew& crew, const ConnView* peers, const P2pWork& work, unsigned channel) {
  const Part part = messagePart(work, work.sendBytes, channel);
  const auto* data = static_cast<const std::int8_t*>(work.send);
  BytePrims<kProtocol> prims(crew, nullptr, &peers[work.sendPeer], {}, false);
  if (part.count > 0) prims.send(data + part.begin, part.count);
  if (work.sendBytes == 0 && channel == work.channelLo) prims.sendEmpty();
  if constexpr (kProtocol == Protocol::Simple) {
    prims.finishUnread();
  } else {
    prims.finish();
  }
}

/// Waits until everything that was sent has been read: some of it may have been offered where it lies.
TUTTI_DEVICE void awaitReaders(const Crew& crew, const KernelArgs& args, unsigned channel) {
  bool alive = crew.thread.loadRelaxedSys(&crew.shared->aborted) == 0;
  for (unsigned i = 0; i < args.nWorks && alive && crew.group.rank == 0; ++i) {
    const P2pWork& work = args.p2p[i];
    if (work.sendPeer < 0 || work.sendPeer == args.comm->rank || work.sendProtocol != Protocol::Simple) continue;
    if (channel < work.channelLo || channel > work.channelHi) continue;
    const ConnView& conn = args.comm->channels[channel].sendTo(ConnKind::Mesh, work.sendPeer);
    if (conn.pullFrom == nullptr) continue;
    const std::uint64_t sent = crew.thread.loadRelaxedSys(conn.stepOf(Protocol::Simple));
    alive = simt::spinUntil(crew.thread, crew.abortWord,
                            [&] { return crew.thread.loadAcquireSys(conn.headOf(Protocol::Simple)) == sent; });
  }
}

template <Protocol kProtocol>
TUTTI_DEVICE void recvMessage(const Crew& crew, const ConnView* peers, const P2pWork& work, unsigned channel) {
  const Part part = messagePart(work, work.recvBytes, channel);
  auto* data = static_cast<std::int8_t*>(work.recv);
  BytePrims<kProtocol> prims(crew, &peers[work.recvPeer], nullptr, {}, simt::streamingPays(work.recvBytes));
  if (part.count > 0) prims.recv(data + part.begin, part.count);
  if (work.recvBytes == 0 && channel == work.channelLo) prims.recvEmpty();
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
TUTTI_DEVICE void sendMessages(const Crew& crew, const KernelArgs& args, unsigned channel) {
  const CommView& comm = *args.comm;
  for (unsigned i = 0; i < args.nWorks; ++i) {
    const P2pWork& work = args.p2p[i];
    if (work.sendPeer < 0 || channel < work.channelLo || channel > work.channelHi) continue;
    const ConnView* peers = comm.channels[channel].send[static_cast<int>(ConnKind::Mesh)];
    if (work.sendPeer == comm.rank) {
      copyToSelf(crew, work, channel);
    } else if (work.sendProtocol == Protocol::LL) {
      sendMessage<Protocol::LL>(crew, peers, work, channel);
    } else {
      sendMessage<Protocol::Simple>(crew, peers, work, channel);
    }
  }
  // At the end: a reader that is late keeps no message to others.
  if constexpr (simt::kPulls) awaitReaders(crew, args, channel);
}

/// All messages this rank receives in the launch.
TUTTI_DEVICE void recvMessages(const Crew& crew, const KernelArgs& args, unsigned channel) {
  const CommView& comm = *args.comm;
  for (unsigned i = 0; i < args.nWorks; ++i) {
    const P2pWork& work = args.p2p[i];
    if (work.recvPeer < 0 || work.recvPeer == comm.rank) continue;
    if (channel < work.channelLo || channel > work.channelHi) continue;
    const ConnView* peers = comm.channels[channel].recv[static_cast<int>(ConnKind::Mesh)];
    if (work.recvProtocol == Protocol::LL) {
      recvMessage<Protocol::LL>(crew, peers, work, channel);
    } else {
      recvMessage<Protocol::Simple>(crew, peers, work, channel);
    }
  }
}

}  // namespace tutti::device
