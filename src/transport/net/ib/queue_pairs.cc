#include "transport/net/ib/queue_pairs.h"

#include <fmt/core.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/log.h"
#include "transport/net/ib/nic/nic.h"
#include "transport/net/ib/nic/options.h"
#include "transport/net/ib/nic/port.h"
#include "transport/net/ib/nic/registrations.h"

namespace tutti::net::ib {

namespace {

/// Numbers of packets have 24 bits. Those of an era begin far from where the one before has been.
constexpr std::uint64_t kPackets = 1 << 24;
constexpr std::uint64_t kEraPackets = 0x5a5a5b;

}  // namespace

Result<std::unique_ptr<CompletionQueue>> CompletionQueue::create(const IbPort& port, std::uint32_t entries) {
  Nic& nic = *port.nic;
  errno = 0;
  ibv_cq* const queue = nic.verbs().create_cq(nic.context(), static_cast<int>(entries), nullptr, nullptr, 0);
  if (queue != nullptr) return std::unique_ptr<CompletionQueue>(new CompletionQueue(port, queue));
  const int error = errno;
  return fail(ncclSystemError, "NET/IB : Call to ibv_create_cq on {} failed with error {}: {} entries, at most {}{}",
              port.text(), errnoText(error), entries, nic.attributes().max_cqe,
              memlockRemedy(error, entries * sizeof(ibv_wc), nic.registrations().bytes()));
}

CompletionQueue::~CompletionQueue() {
  port_.nic->verbs().destroy_cq(queue_);
}

Result<std::unique_ptr<EndMemory>> EndMemory::create(std::span<const IbPort* const> ports, std::size_t bytes) {
  void* const address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) {
    const int error = errno;
    return fail(ncclSystemError, "NET/IB : No memory of {} bytes for a connection: {}", bytes, errnoText(error));
  }
  std::unique_ptr<EndMemory> memory(new EndMemory(ports, Mapping({address, bytes})));
  for (const IbPort* port : ports) {
    ASSIGN(ibv_mr * region,
           port->nic->registrations().acquire({.address = address, .bytes = bytes, .strictOrder = true}));
    memory->regions_.push_back(region);
  }
  return memory;
}

EndMemory::~EndMemory() {
  for (std::size_t i = 0; i < regions_.size(); ++i) ports_[i]->nic->registrations().release(regions_[i]).ignore();
}

namespace {

/// The port as its peer is told, and as far as it may change: asked anew for each connection.
Result<PortAddress> addressOf(const IbPort& port, const IbOptions& options) {
  const auto attributes = port.nic->queryPort(port.number);
  if (!attributes) return fail(ncclSystemError, "NET/IB : Call to ibv_query_port on {} failed", port.text());
  PortAddress address;
  address.ethernet = port.ethernet ? 1 : 0;
  address.mtu = static_cast<std::uint8_t>(attributes->active_mtu);
  address.lid = attributes->lid;
  address.number = static_cast<std::uint8_t>(port.number);
  address.needsGid = (attributes->flags & IBV_QPF_GRH_REQUIRED) != 0 ? 1 : 0;
  port.nic->name().copy(address.nic.data(), address.nic.size() - 1);
  const std::vector<GidEntry> table = port.nic->gids(port.number, attributes->gid_tbl_len);
  const GidChoice choice = chooseGid(table, options.gidFor(port.ethernet));
  if (!choice.doubt.empty() && port.ethernet) {
    warn("NET/IB : {} uses GID {} {}: {}. Peers may not be reachable; show_gids lists what there is", port.text(),
         choice.entry.index, gidText(choice.entry.gid), choice.doubt);
  }
  address.gidIndex = static_cast<std::uint32_t>(choice.entry.index);
  address.gid = choice.entry.gid;
  return address;
}

}  // namespace

Status QueuePairs::makeQueue(std::size_t port) {
  const std::size_t perPort = (shape_.count + ports_.size() - 1) / ports_.size();
  const auto entries = static_cast<std::uint32_t>(perPort * (shape_.sends + shape_.receives));
  ASSIGN(addresses_[port], addressOf(*ports_[port], options_));
  ASSIGN(queues_[port], CompletionQueue::create(*ports_[port], entries));
  return {};
}

Status QueuePairs::makePair(std::size_t pair) {
  const std::size_t port = portOf(pair);
  ASSIGN(pairs_[pair], QueuePair::create(*ports_[port],
                                         {.completions = queues_[port]->get(),
                                          .sends = shape_.sends,
                                          .receives = shape_.receives,
                                          .inlineBytes = shape_.inlineBytes,
                                          .trafficClass = shape_.trafficClass},
                                         options_));
  return {};
}

Result<std::unique_ptr<QueuePairs>> QueuePairs::create(std::vector<const IbPort*> ports, const Shape& shape,
                                                       const IbOptions& options) {
  std::unique_ptr<QueuePairs> made(new QueuePairs(std::move(ports), shape, options));
  for (std::size_t port = 0; port < made->ports_.size(); ++port) TRY(made->makeQueue(port));
  for (std::size_t i = 0; i < shape.count; ++i) TRY(made->makePair(i));
  return made;
}

Strands QueuePairs::all() const {
  Strands strands;
  for (std::size_t i = 0; i < pairs_.size(); ++i) strands.set(i);
  return strands;
}

Strands QueuePairs::besides(std::size_t pair) const {
  Strands strands;
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    strands.set(i, portOf(i) == portOf(pair) && remotePortOf(i) == remotePortOf(pair));
  }
  return strands;
}

Strands QueuePairs::ofPort(std::size_t port) const {
  Strands strands;
  for (std::size_t i = port; i < pairs_.size(); i += ports_.size()) strands.set(i);
  return strands;
}

void QueuePairs::keep(const Strands& strands) {
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    if (!strands[i]) pairs_[i].reset();
  }
  for (std::size_t port = 0; port < ports_.size(); ++port) {
    if ((strands & ofPort(port)).none()) queues_[port].reset();
  }
}

Strands QueuePairs::make(const Strands& strands, std::uint64_t era) {
  const ErrorsAsInfo quiet;  // a port that has failed in the meantime is one that is left out
  era_ = era;
  Strands made;
  for (std::size_t port = 0; port < ports_.size(); ++port) {
    const Strands here = strands & ofPort(port);
    if (here.none() || !makeQueue(port).ok()) continue;
    for (std::size_t i = port; i < pairs_.size(); i += ports_.size()) made.set(i, here[i] && makePair(i).ok());
  }
  return made;
}

bool QueuePairs::connect(Strands& strands, const SideBlock& remote) {
  const ErrorsAsInfo quiet;
  remote_.ports = remote.ports;
  remote_.numbers = remote.numbers;
  bool all = true;
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    if (remote.numbers[i] == 0) strands.reset(i);
    if (!strands[i]) continue;
    const auto over = pairs_[i]->connect(pathOf(i));
    strands.set(i, over.ok());
    all = all && (!over.ok() || over.value());
  }
  return all;
}

SideBlock QueuePairs::describe() const {
  SideBlock block;
  block.children = static_cast<std::uint32_t>(ports_.size());
  block.queuePairs = static_cast<std::uint32_t>(pairs_.size());
  block.serviceLevel = shape_.serviceLevel;
  block.trafficClass = shape_.trafficClass;
  block.adaptive = std::all_of(ports_.begin(), ports_.end(), [](const IbPort* port) { return port->adaptive; }) ? 1 : 0;
  std::copy(addresses_.begin(), addresses_.end(), block.ports.begin());
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    if (!has(i)) continue;
    block.numbers[i] = pairs_[i]->number();
    block.ece[i] = pairs_[i]->ece();
  }
  return block;
}

Status QueuePairs::checkRemote(const SideBlock& remote) const {
  if (remote.magic != kIbMagic || remote.children == 0 || remote.children > kMostChildren ||
      remote.queuePairs != pairs_.size()) {
    return fail(
        ncclInternalError,
        "NET/IB : The peer's description of its queue pairs is none ({} ports, {} queue pairs, here are {}): do "
        "all ranks use the same library?",
        remote.children, remote.queuePairs, pairs_.size());
  }
  if (remote.ports.front().ethernet == addresses_.front().ethernet) return {};
  return fail(
      ncclRemoteError,
      "NET/IB : Remote {} device is incompatible with the local {} (of {}): {}. Choose ports of one kind on all "
      "hosts with NCCL_IB_HCA",
      remote.ports.front().ethernet != 0 ? "RoCE" : "InfiniBand", addresses_.front().text(),
      addresses_.front().ethernet != 0 ? "RoCE" : "InfiniBand", remote.ports.front().text());
}

QueuePairPath QueuePairs::pathOf(std::size_t pair) const {
  return {.local = addresses_[portOf(pair)],
          .remote = remote_.ports[remotePortOf(pair)],
          .remoteNumber = remote_.numbers[pair],
          .serviceLevel = shape_.serviceLevel,
          .firstPacket = static_cast<std::uint32_t>(era_ * kEraPackets % kPackets),
          .ece = remote_.ece[pair]};
}

Result<bool> QueuePairs::connect(const SideBlock& remote) {
  if (standing_ == 0) {
    TRY(checkRemote(remote));
    remote_ = remote;
  }
  while (standing_ < pairs_.size()) {
    ASSIGN(const bool over, connectFirst(standing_));
    if (!over) return false;
    ++standing_;
  }
  return true;
}

/// A port may be down while others connect.
Result<bool> QueuePairs::connectFirst(std::size_t pair) {
  if (!options_.failover || remote_.failover == 0) return pairs_[pair]->connect(pathOf(pair));
  if (remote_.numbers[pair] != 0) {
    Result<bool> over = false;
    {
      const ErrorsAsInfo quiet;
      over = pairs_[pair]->connect(pathOf(pair));
      if (!over.ok() && refusal_.empty()) refusal_ = lastErrorText();
    }
    if (over.ok()) return over;
    refused_.set(pair);
  }
  const auto there = std::count_if(pairs_.begin(), pairs_.end(), [](const auto& one) { return one != nullptr; });
  if (there == 1) {
    return fail(ncclSystemError, "{}", refusal_.empty() ? "NET/IB : The peer could connect no queue pair" : refusal_);
  }
  pairs_[pair].reset();
  return true;
}

std::span<ibv_wc> QueuePairs::poll(std::size_t port, std::span<ibv_wc> room) {
  if (queues_[port] == nullptr) return {};
  ibv_cq* const queue = queues_[port]->get();
  const int count = ibv_poll_cq(queue, static_cast<int>(room.size()), room.data());
  return room.first(static_cast<std::size_t>(std::max(count, 0)));
}

std::size_t QueuePairs::indexOf(std::size_t port, std::uint32_t number) const {
  for (std::size_t i = port; i < pairs_.size(); i += ports_.size()) {
    if (has(i) && pairs_[i]->number() == number) return i;
  }
  return pairs_.size();
}

std::string QueuePairs::pathText(std::size_t pair) const {
  if (pair >= pairs_.size()) return "a queue pair that is none of this connection's";
  const QueuePairPath path = pathOf(pair);
  return fmt::format("{}, queue pair {}, to {}, queue pair {}", path.local.text(),
                     has(pair) ? pairs_[pair]->number() : 0, path.remote.text(), path.remoteNumber);
}

void QueuePairs::breakUp() {
  for (const auto& pair : pairs_) {
    if (pair != nullptr) pair->breakUp();
  }
}

}  // namespace tutti::net::ib
