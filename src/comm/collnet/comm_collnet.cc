#include "comm/collnet/comm_collnet.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/ranks/control_channel.h"
#include "comm/collnet/collnet_member.h"
#include "comm/collnet/lanes.h"
#include "comm/collnet/node_heads.h"
#include "comm/collnet/rails.h"
#include "comm/collnet/reasons.h"
#include "comm/collnet/slot_places.h"
#include "comm/collnet/table.h"
#include "comm/network/network.h"
#include "device/collnet_cut.h"
#include "gpu/memory.h"
#include "gpu/memory_ledger.h"
#include "plugin/network/collnet.h"
#include "proxy/group.h"
#include "topo/machine/rank_layout.h"
#include "transport/collnet/link.h"

namespace tutti::comm {

namespace {

/// What each rank says at the end of a step of joining. Trivially copyable.
struct JoinWord {
  std::uint8_t failed = 0;
  std::uint8_t gathers = 1;
  std::uint8_t scatters = 1;
  std::uint8_t head = 0;
  CollNetSupport reduces;
  collnet::CollNetAddress address;
  std::uint32_t afterMs = 0;  ///< it began: who fails first may be what others wait for in vain
};

/// A step failed; in this rank's words, which are lost with the scope that keeps them from being an error.
std::string noteFailure(JoinWord& word, SteadyClock::time_point begin) {
  word.failed = 1;
  word.afterMs = static_cast<std::uint32_t>(1000 * secondsSince(begin));
  return lastErrorText();
}

/// All ranks' words. `ours` is this rank's.
Result<std::vector<JoinWord>> exchange(const CollNetMember& member, const JoinWord& ours) {
  std::vector<JoinWord> words(member.peers.size());
  words[static_cast<std::size_t>(member.layout.rank())] = ours;
  TRY(allGatherValues(member.control, std::span(words)));
  return words;
}

/// Whose failure came first, and why; empty: all is well. Collective. `own`: this rank's words.
Result<std::string> failureIn(const CollNetMember& member, std::span<const JoinWord> words, const std::string& own) {
  const auto earlier = [](const JoinWord& a, const JoinWord& b) {
    return a.failed != b.failed ? a.failed > b.failed : a.failed != 0 && a.afterMs < b.afterMs;
  };
  const auto first = std::min_element(words.begin(), words.end(), earlier);
  if (first->failed == 0) return std::string();
  const auto rank = static_cast<std::size_t>(first - words.begin());
  ASSIGN(const std::vector<RankReason> reasons, gatherReasons(member.control, {own, !own.empty()}));
  return reasonText(member.peers[rank], reasons[rank].why);
}

/// A described machine may have other NICs than there are: then one of these.
int nicFor(const CommNetwork& network, int nic, int rail) {
  const std::vector<int>& able = network.collective();
  const bool exists = std::find(able.begin(), able.end(), nic) != able.end();
  return exists ? nic : able[static_cast<std::size_t>(rail) % able.size()];
}

std::unique_ptr<collnet::CollNetLink> linkFor(const CollNetMember& member) {
  const int rail = member.lanes.head;
  if (rail < 0) return nullptr;
  const int nic = nicFor(*member.network, member.node.heads[static_cast<std::size_t>(rail)].nic, rail);
  const topo::PeerInfo& self = member.peers[static_cast<std::size_t>(member.layout.rank())];
  const auto [send, recv] = slotPlacesAt(nic, *member.network, self, member.settings);
  plugin::CollNet& collNet = *member.network->collNet();
  return std::make_unique<collnet::CollNetLink>(
      collnet::LinkSetup{.network = {member.network, &collNet},
                         .device = member.network->collDevices()[static_cast<std::size_t>(nic)],
                         .send = send,
                         .recv = recv,
                         .self = self,
                         .rail = rail,
                         .gpu = &member.device,
                         .ledger = member.ledger,
                         .registered = member.registered});
}

/// Joins the heads of the rail, whose addresses are among `words`.
Status connect(const CollNetMember& member, collnet::CollNetLink& link, std::span<const JoinWord> words) {
  std::vector<collnet::CollNetAddress> nodes;
  for (int node = 0; node < member.layout.nNodes(); ++node) {
    nodes.push_back(words[static_cast<std::size_t>(member.rails.headOf(node, member.lanes.head))].address);
  }
  // Before others give up waiting for this rank's word.
  const milliseconds patience = std::min(collnet::kConnectPatience, member.control.timeout() / 2);
  return link.connect(nodes, member.layout.nodeOf(member.layout.rank()), Deadline::in(patience), &member.abort);
}

Result<CollNetSupport> askSupport(plugin::CollNet& collNet) {
  CollNetSupport support;
  for (int type = 0; type < static_cast<int>(ncclNumTypes); ++type) {
    for (const ncclRedOp_t op : {ncclSum, ncclProd, ncclMax, ncclMin}) {
      const auto datatype = static_cast<ncclDataType_t>(type);
      ASSIGN(const bool reduces, collNet.reduces({datatype, op}));
      if (reduces) support.add(datatype, op);
    }
  }
  return support;
}

/// What all heads can do.
CollNetFacts factsFrom(const CollNetMember& member, std::span<const JoinWord> words) {
  CollNetFacts facts;
  facts.why.clear();
  facts.direct = member.rails.direct();
  facts.chain = member.rails.chain();
  facts.heads = member.rails.heads;
  facts.mostLocals = member.rails.mostLocals;
  facts.slotBytes = member.slotBytes;
  facts.gathers = facts.scatters = facts.direct && member.rails.everyRankHeads();
  bool first = true;
  for (const JoinWord& word : words) {
    if (word.head == 0) continue;
    facts.gathers = facts.gathers && word.gathers != 0;
    facts.scatters = facts.scatters && word.scatters != 0;
    if (std::exchange(first, false)) facts.reduces = word.reduces;
    facts.reduces.intersect(word.reduces);
  }
  return facts;
}

}  // namespace

CommCollNet::CommCollNet(std::unique_ptr<collnet::CollNetLink> link) : link_(std::move(link)) {}

CommCollNet::~CommCollNet() = default;

Status CommCollNet::addLanes(const CollNetMember& member) {
  const auto add = [&](const char* name, const std::vector<int>& channels, std::vector<device::CollNetConn>& lanes,
                       Set& set) -> Status {
    if (channels.empty()) return {};
    set.channel = channels.front();
    ASSIGN(set.number, link_->addLanes({.name = name, .channels = channels, .slotBytes = member.slotBytes}));
    for (std::size_t lane = 0; lane < channels.size(); ++lane)
      lanes.push_back(link_->conn(set.number, static_cast<int>(lane)));
    return {};
  };
  TRY(add("CollNetDirect", member.lanes.directLanes, direct_, directSet_));
  return add("CollNetChain", member.lanes.chainLanes, chain_, chainSet_);
}

void CommCollNet::close() {
  if (link_) link_->close();
}

const device::CollNetView* CommCollNet::view() const {
  return reinterpret_cast<const device::CollNetView*>(table_->data());
}

const proxy::ProgressTask* CommCollNet::task() const {
  return link_ ? link_->task() : nullptr;
}

CollNetSteps CommCollNet::steps(device::Algorithm algorithm) const {
  const bool chain = algorithm == device::Algorithm::CollNetChain;
  const std::vector<device::CollNetConn>& lanes = chain ? chain_ : direct_;
  if (lanes.empty()) return {};
  const Set& set = chain ? chainSet_ : directSet_;
  return {link_->stepEvents(set.number, device::Direction::Send),
          link_->stepEvents(set.number, device::Direction::Recv), set.channel,
          static_cast<std::uint32_t>(lanes.size())};
}

std::uint64_t CommCollNet::countSteps(device::Algorithm algorithm, device::Func func, std::uint64_t count,
                                      std::uint64_t chunk) const {
  if (algorithm == device::Algorithm::CollNetChain) return device::chainCut(counted_, count, chunk).turns();
  return device::directCut(func, counted_, count, chunk).turns();
}

Status CommCollNet::writeTable(const CollNetMember& member) {
  const gpu::MemoryUse use("CollNet tables", member.ledger, gpu::MemoryClass::Persistent);
  ASSIGN(gpu::DeviceBuffer table,
         gpu::DeviceBuffer::create(member.device, collNetTableBytes(member.rails, member.lanes.nChannels), use));
  const std::vector<std::byte> image =
      collNetTable(member.layout, member.rails, member.lanes, direct_, chain_, table.address());
  TRY(gpu::copyToDevice(member.device, table.address(), image));
  std::memcpy(&counted_, image.data(), sizeof(counted_));
  table_ = std::make_unique<gpu::DeviceBuffer>(std::move(table));
  return {};
}

namespace {

/// What has been made by then goes; that this may fail as well is no news.
CollNetOutcome turnedOff(std::unique_ptr<CommCollNet> made, std::string why) {
  const ErrorsAsInfo quiet;
  made.reset();
  return {nullptr, std::move(why)};
}

}  // namespace

Result<CollNetOutcome> CommCollNet::join(const CollNetMember& member) {
  std::unique_ptr<CommCollNet> made(new CommCollNet(linkFor(member)));
  JoinWord word;
  word.head = made->link_ != nullptr ? 1 : 0;
  std::string own;
  if (made->link_) {
    const ErrorsAsInfo quiet;  // it turns CollNet off, and is no error of the communicator; likewise below
    const auto address = made->link_->listen();
    if (address.ok()) word.address = address.value();
    if (!address.ok()) own = noteFailure(word, SteadyClock::now());
  }
  ASSIGN(const std::vector<JoinWord> listening, exchange(member, word));
  ASSIGN(std::string whyDeaf, failureIn(member, listening, own));
  if (!whyDeaf.empty()) return turnedOff(std::move(made), std::move(whyDeaf));

  const auto begin = SteadyClock::now();
  const auto complete = [&]() -> Status {
    if (made->link_) {
      plugin::CollNet& collNet = *member.network->collNet();
      TRY(connect(member, *made->link_, listening));
      TRY(made->addLanes(member));
      ASSIGN(word.reduces, askSupport(collNet));
      word.gathers = collNet.gathers() ? 1 : 0;
      word.scatters = collNet.scatters() ? 1 : 0;
    }
    return made->writeTable(member);
  };
  {
    const ErrorsAsInfo quiet;
    if (!complete().ok()) own = noteFailure(word, begin);
  }
  ASSIGN(const std::vector<JoinWord> joined, exchange(member, word));
  ASSIGN(std::string whyAlone, failureIn(member, joined, own));
  if (!whyAlone.empty()) return turnedOff(std::move(made), std::move(whyAlone));
  made->facts_ = factsFrom(member, joined);
  if (made->link_) TRY(member.progress.add(made->link_->task()));
  return CollNetOutcome{std::move(made), {}};
}

}  // namespace tutti::comm
