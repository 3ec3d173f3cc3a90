// Queue pairs of the verbs library for tests: their states, and what they carry.
#include <arpa/inet.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "transport/net/ib/fake_fabric.h"

namespace tutti::test {

namespace {

constexpr std::uint32_t kNoAnswer = 0x81;  ///< vendor's code of a retry error
constexpr int kForInit = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int kForReady = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int kForSend =
    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;

bool named(const FakePort& port, const ibv_gid& gid) {
  return std::any_of(port.gids.begin(), port.gids.end(), [&](const FakeGid& one) {
    ibv_gid own{};
    return ::inet_pton(AF_INET6, one.address.c_str(), own.raw) == 1 && std::memcmp(own.raw, gid.raw, 16) == 0;
  });
}

/// As NICs write: ascending, whole words at once. Whoever finds the last word finds the others.
void writeAscending(char* to, const char* from, std::size_t bytes) {
  constexpr std::size_t kMost = 512;
  if (bytes == 0) return;
  if (bytes > kMost || bytes % 8 != 0 || reinterpret_cast<std::uintptr_t>(to) % 8 != 0) {
    std::memcpy(to, from, bytes);
    return;
  }
  for (std::size_t i = 0; i < bytes; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, from + i, sizeof(word));
    std::atomic_ref(*reinterpret_cast<std::uint64_t*>(to + i)).store(word, std::memory_order_release);
  }
}

}  // namespace

std::uint64_t Work::bytes() const {
  std::uint64_t sum = inlined.size();
  for (const ibv_sge& part : parts) sum += part.length;
  return sum;
}

char* Fabric::memory(const NicState& nic, const ibv_pd* domain, std::uint32_t key, bool remote, std::uint64_t address,
                     std::uint64_t bytes, unsigned access) {
  if (((key & kRemoteKeyBit) != 0) != remote) return nullptr;
  const auto found = nic.regions.find(key & ~kRemoteKeyBit);
  if (found == nic.regions.end()) return nullptr;
  const Region& region = *found->second;
  if (region.mr.pd != domain || (region.access & access) != access) return nullptr;
  if (address < region.first || address + bytes > region.first + region.mr.length) return nullptr;
  return region.base + (address - region.first);
}

int Fabric::checkReady(const Pair& pair, const ibv_qp_attr& wanted) const {
  const FakePort& port = portOf(pair);
  const ibv_ah_attr& way = wanted.ah_attr;
  if (way.port_num != pair.prepared.port_num || wanted.path_mtu > port.mtu) return EINVAL;
  if (port.ethernet && way.is_global == 0) return EINVAL;
  if (way.is_global == 0) return 0;
  const bool set = way.grh.sgid_index < port.gids.size() && !port.gids[way.grh.sgid_index].address.empty();
  return set ? 0 : EINVAL;
}

int Fabric::modify(Pair& pair, const ibv_qp_attr& wanted, int mask) {
  if (const int error = failingChange(wanted.qp_state); error != 0) return error;
  const auto wrong = [&](const char* what) {
    fault(std::string("ibv_modify_qp: ") + what);
    return EINVAL;
  };
  switch (wanted.qp_state) {
    case IBV_QPS_INIT:
      if (pair.qp.state != IBV_QPS_RESET || mask != kForInit) return wrong("to INIT");
      if (wanted.port_num == 0 || wanted.port_num > pair.nic->is.ports.size()) return wrong("a port that is none");
      pair.prepared = wanted;
      break;
    case IBV_QPS_RTR:
      if (pair.qp.state != IBV_QPS_INIT || mask != kForReady) return wrong("to RTR");
      if (const int error = checkReady(pair, wanted); error != 0) return error;
      pair.ready = wanted;
      break;
    case IBV_QPS_RTS:
      if (pair.qp.state != IBV_QPS_RTR || mask != kForSend) return wrong("to RTS");
      break;
    case IBV_QPS_ERR:
      keepForLater(pair);
      breakUp(pair);
      break;
    default:
      return wrong("to a state that nobody wants");
  }
  pair.qp.state = wanted.qp_state;
  return 0;
}

Pair* Fabric::peerOf(const Pair& pair) {
  const ibv_ah_attr& way = pair.ready.ah_attr;
  for (const auto& nic : nics) {
    for (const FakePort& port : nic->is.ports) {
      if (way.is_global != 0 ? !named(port, way.grh.dgid) : port.ethernet || port.lid != way.dlid) continue;
      const auto found = nic->pairs.find(pair.ready.dest_qp_num);
      if (found == nic->pairs.end() || found->second->qp.state == IBV_QPS_RESET) continue;
      if (&portOf(*found->second) != &port) continue;
      const bool up = found->second->qp.state == IBV_QPS_RTR || found->second->qp.state == IBV_QPS_RTS;
      const bool back = found->second->ready.dest_qp_num == pair.qp.qp_num;
      return up && back && !nic->cut && !pair.nic->cut ? found->second : nullptr;
    }
  }
  return nullptr;
}

void Fabric::keepForLater(Pair& pair) {
  Pair* const peer = keepsLate_ ? peerOf(pair) : nullptr;
  if (peer == nullptr) return;
  Late late{.nic = peer->nic, .number = peer->qp.qp_num};
  for (const Work& work : pair.kept) {
    Late::Message message{.wr = work.wr, .bytes = work.inlined};
    for (const ibv_sge& part : work.parts) {
      const char* const from = memory(*pair.nic, pair.qp.pd, part.lkey, false, part.addr, part.length, 0);
      if (from != nullptr) message.bytes.insert(message.bytes.end(), from, from + part.length);
    }
    late.messages.push_back(std::move(message));
  }
  if (!late.messages.empty()) late_.push_back(std::move(late));
}

/// False: the queue pair that it is for is no more, or takes nothing, and there is nothing else.
bool Fabric::carryOutLate(Late& late) {
  if (late.messages.empty()) return false;
  const auto found = late.nic->pairs.find(late.number);
  if (found == late.nic->pairs.end() || late.nic->cut) return false;
  Pair& peer = *found->second;
  const Late::Message message = std::move(late.messages.front());
  late.messages.pop_front();
  const bool up = peer.qp.state == IBV_QPS_RTR || peer.qp.state == IBV_QPS_RTS;
  const bool announces = message.wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  if (!up || (announces && peer.receives.empty())) return false;
  if (!message.bytes.empty()) {
    char* const far = memory(*peer.nic, peer.qp.pd, message.wr.wr.rdma.rkey, true, message.wr.wr.rdma.remote_addr,
                             message.bytes.size(), IBV_ACCESS_REMOTE_WRITE);
    if (far == nullptr) return false;
    writeAscending(far, message.bytes.data(), message.bytes.size());
  }
  if (announces) receive(peer, message.wr, message.bytes.size());
  return true;
}

void Fabric::push(Pair& pair, bool receive, Queue::Entry entry) {
  entry.pair = &pair;
  entry.wc.qp_num = pair.qp.qp_num;
  auto& queue = *reinterpret_cast<Queue*>(receive ? pair.init.recv_cq : pair.init.send_cq);
  const std::size_t there = queue.entries.size() + queue.delayed.size();
  if (there == static_cast<std::size_t>(queue.cq.cqe)) return fault("a completion queue is full");
  const bool late = !receive && pair.nic->delaysAcknowledgements;
  (late ? queue.delayed : queue.entries).push_back(entry);
}

void Fabric::finish(Pair& pair, const Work& work, ibv_wc_status status, std::uint32_t vendor) {
  const bool tells = status != IBV_WC_SUCCESS || (work.wr.send_flags & IBV_SEND_SIGNALED) != 0;
  ++pair.quiet;
  if (!tells) return;
  Queue::Entry entry{.sends = std::exchange(pair.quiet, 0)};
  entry.wc.wr_id = work.wr.wr_id;
  entry.wc.status = status;
  entry.wc.vendor_err = vendor;
  entry.wc.opcode = work.wr.opcode == IBV_WR_RDMA_READ ? IBV_WC_RDMA_READ : IBV_WC_RDMA_WRITE;
  push(pair, false, entry);
}

void Fabric::breakUp(Pair& pair) {
  pair.qp.state = IBV_QPS_ERR;
  for (; !pair.kept.empty(); pair.kept.pop_front()) finish(pair, pair.kept.front(), IBV_WC_WR_FLUSH_ERR, 0xf9);
  for (; !pair.receives.empty(); pair.receives.pop_front()) {
    Queue::Entry entry{.receives = 1};
    entry.wc.wr_id = pair.receives.front();
    entry.wc.status = IBV_WC_WR_FLUSH_ERR;
    push(pair, true, entry);
  }
}

void Fabric::forget(Pair& pair) {
  for (ibv_cq* cq : {pair.init.send_cq, pair.init.recv_cq}) {
    auto& queue = *reinterpret_cast<Queue*>(cq);
    const auto own = [&](const Queue::Entry& entry) { return entry.pair == &pair; };
    std::erase_if(queue.entries, own);
    std::erase_if(queue.delayed, own);
  }
  auto& events = reinterpret_cast<Context*>(pair.qp.context)->events;
  std::erase_if(events, [&](const ibv_async_event& event) {
    return isOfQueuePair(event.event_type) && event.element.qp == &pair.qp;
  });
}

/// Between memory and memory; the receive is taken by the caller.
ibv_wc_status Fabric::carryOut(Pair& pair, Pair* peer, const Work& work) {
  const bool reads = work.wr.opcode == IBV_WR_RDMA_READ;
  std::vector<char*> places;
  for (const ibv_sge& part : work.parts) {
    places.push_back(memory(*pair.nic, pair.qp.pd, part.lkey, false, part.addr, part.length,
                            reads ? unsigned{IBV_ACCESS_LOCAL_WRITE} : 0u));
    if (places.back() == nullptr) return IBV_WC_LOC_PROT_ERR;
  }
  if (peer == nullptr) return IBV_WC_RETRY_EXC_ERR;
  if (work.bytes() == 0) return IBV_WC_SUCCESS;
  const unsigned access = reads ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
  char* far =
      memory(*peer->nic, peer->qp.pd, work.wr.wr.rdma.rkey, true, work.wr.wr.rdma.remote_addr, work.bytes(), access);
  if (far == nullptr || (static_cast<unsigned>(peer->prepared.qp_access_flags) & access) == 0) {
    breakUp(*peer);
    return IBV_WC_REM_ACCESS_ERR;
  }
  writeAscending(far, work.inlined.data(), work.inlined.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::size_t bytes = work.parts[i].length;
    reads ? writeAscending(places[i], far, bytes) : writeAscending(far, places[i], bytes);
    far += bytes;
  }
  return IBV_WC_SUCCESS;
}

/// An announcement: the receive that it takes is done.
void Fabric::receive(Pair& peer, const ibv_send_wr& wr, std::uint64_t bytes) {
  Queue::Entry entry{.receives = 1};
  entry.wc.wr_id = peer.receives.front();
  entry.wc.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
  entry.wc.imm_data = wr.imm_data;
  entry.wc.wc_flags = IBV_WC_WITH_IMM;
  entry.wc.byte_len = static_cast<std::uint32_t>(bytes);
  peer.receives.pop_front();
  if (!peer.nic->losesReceives) push(peer, true, entry);
}

bool Fabric::step(Pair& pair) {
  if (pair.kept.empty()) return false;
  Pair* const peer = peerOf(pair);
  const bool announces = pair.kept.front().wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  if (announces && peer != nullptr && peer->receives.empty()) {
    if (!std::exchange(pair.kept.front().waited, true)) fault("a message came before its receive");
    return false;
  }
  const Work work = std::move(pair.kept.front());
  pair.kept.pop_front();
  std::uint32_t vendor = 0;
  bool arrives = true;
  ibv_wc_status status = plannedFor(work, &vendor, &arrives);
  const ibv_wc_status done = arrives ? carryOut(pair, peer, work) : status;
  if (done == IBV_WC_SUCCESS && announces) receive(*peer, work.wr, work.bytes());
  if (status == IBV_WC_SUCCESS) status = done;
  if (status == IBV_WC_RETRY_EXC_ERR && vendor == 0) vendor = kNoAnswer;
  work_.push_back({pair.nic->is.name, pair.qp.qp_num, work.wr.opcode, work.bytes(),
                   (work.wr.send_flags & IBV_SEND_SIGNALED) != 0, (work.wr.send_flags & IBV_SEND_INLINE) != 0});
  finish(pair, work, status, vendor);
  if (status != IBV_WC_SUCCESS) breakUp(pair);
  return true;
}

void Fabric::runAll() {
  for (bool any = true; any;) {
    any = false;
    for (const auto& nic : nics) {
      for (const auto& [number, pair] : nic->pairs) any = step(*pair) || any;
    }
  }
}

int Fabric::post(Pair& pair, const ibv_send_wr& wr) {
  if (pair.qp.state != IBV_QPS_RTS && pair.qp.state != IBV_QPS_ERR) return EINVAL;
  if (const std::uint32_t room = pair.nic->is.sendRoom; room > 0 && pair.sending >= room) return ENOMEM;
  if (pair.sending == pair.init.cap.max_send_wr) {
    fault("a send queue is full");
    return ENOMEM;
  }
  if (wr.num_sge > static_cast<int>(pair.init.cap.max_send_sge)) return EINVAL;
  Work work{.wr = wr, .parts = {wr.sg_list, wr.sg_list + wr.num_sge}};
  if ((wr.send_flags & IBV_SEND_INLINE) != 0) {
    for (const ibv_sge& part : std::exchange(work.parts, {})) {
      const auto* const from = reinterpret_cast<const char*>(part.addr);
      work.inlined.insert(work.inlined.end(), from, from + part.length);
    }
    if (work.inlined.size() > pair.init.cap.max_inline_data) return ENOMEM;
  }
  ++pair.sending;
  pair.kept.push_back(std::move(work));
  if (pair.qp.state == IBV_QPS_ERR) {
    breakUp(pair);
  } else if (!held_) {
    while (step(pair)) {
    }
  }
  return 0;
}

int Fabric::post(Pair& pair, const ibv_recv_wr& wr) {
  if (pair.qp.state == IBV_QPS_RESET) return EINVAL;
  if (const std::uint32_t room = pair.nic->is.receiveRoom; room > 0 && pair.receiving >= room) return ENOMEM;
  if (pair.receiving == pair.init.cap.max_recv_wr) {
    fault("a receive queue is full");
    return ENOMEM;
  }
  ++pair.receiving;
  pair.receives.push_back(wr.wr_id);
  if (pair.qp.state == IBV_QPS_ERR) breakUp(pair);
  if (!held_) runAll();
  return 0;
}

int Fabric::poll(Queue& queue, std::span<ibv_wc> room) {
  int count = 0;
  for (; !queue.entries.empty() && static_cast<std::size_t>(count) < room.size(); queue.entries.pop_front()) {
    const Queue::Entry& entry = queue.entries.front();
    entry.pair->sending -= entry.sends;
    entry.pair->receiving -= entry.receives;
    room[static_cast<std::size_t>(count++)] = entry.wc;
  }
  return count;
}

}  // namespace tutti::test
