#include "comm/agreement/host_topology.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/ranks/control_channel.h"
#include "comm/agreement/comm_graphs.h"
#include "comm/agreement/own_machine.h"
#include "comm/settings/topology_settings.h"
#include "topo/machine/peer_info.h"
#include "topo/machine/rank_layout.h"
#include "topo/search/topology.h"
#include "topo/xml/fuse.h"
#include "topo/xml/topology_xml.h"
#include "topo/xml/values.h"

namespace tutti::comm {

namespace {

/// Tags of the control channel: a text's length, then the text.
constexpr int kLengthTag = 0x2000;
constexpr int kTextTag = 0x2001;

std::span<const int> localRanks(const TopologyContext& context) {
  return context.layout.ranksOnNode(context.layout.nodeOf(context.layout.rank()));
}

const topo::PeerInfo& peerOf(const TopologyContext& context, int rank) {
  return context.peers[static_cast<std::size_t>(rank)];
}

/// What one rank uses of the elements, with all NICs or none.
topo::XmlElement partOf(const topo::XmlElement& elements, const topo::PeerInfo& peer, bool nets) {
  topo::UsedLeaves used;
  used.gpus.push_back({.busId = static_cast<std::uint64_t>(peer.busId), .rank = peer.rank});
  used.allNets = nets;
  return topo::trimTopology(elements, used);
}

/// As text, for another rank: <machine> with the <system> and a <refused> for each refusal.
std::string writeMachine(const JoinedMachine& machine) {
  topo::XmlElement root{.name = "machine"};
  root.children.push_back(machine.elements);
  for (const topo::PeerRefusal& refusal : machine.peersRefused) {
    topo::XmlElement& element = root.children.emplace_back(topo::XmlElement{.name = "refused"});
    element.set("from", topo::busIdText(refusal.from));
    element.set("to", topo::busIdText(refusal.to));
    element.set("reason", refusal.reason);
  }
  return topo::writeXml(root);
}

Result<JoinedMachine> parseMachine(std::string_view text, std::string_view origin) {
  ASSIGN(topo::XmlElement root, topo::parseXml(text, origin, {.depth = topo::XmlLimits{}.depth + 1}));
  JoinedMachine machine;
  for (topo::XmlElement& element : root.children) {
    if (element.name != "refused") {
      machine.elements = std::move(element);
      continue;
    }
    topo::PeerRefusal& refusal = machine.peersRefused.emplace_back();
    ASSIGN(refusal.from, topo::busIdAttribute(element, "from"));
    ASSIGN(refusal.to, topo::busIdAttribute(element, "to"));
    ASSIGN(refusal.reason, topo::textAttribute(element, "reason"));
  }
  TRY(topo::checkTopology(machine.elements));
  return machine;
}

Status sendMachine(ControlChannel& control, int peer, const JoinedMachine& machine) {
  const std::string text = writeMachine(machine);
  const std::uint64_t length = text.size();
  TRY(control.send(peer, kLengthTag, std::as_bytes(std::span(&length, 1))));
  return control.send(peer, kTextTag, std::as_bytes(std::span(text)));
}

Result<JoinedMachine> recvMachine(const TopologyContext& context, int peer) {
  const topo::PeerInfo& from = peerOf(context, peer);
  std::uint64_t length = 0;
  TRY(context.control.recv(peer, kLengthTag, std::as_writable_bytes(std::span(&length, 1))));
  if (length > topo::XmlLimits{}.bytes) {
    return fail(ncclInternalError, "Rank {} on host {} describes its machine in {} bytes, at most {} are read",
                from.rank, from.hostName.data(), length, topo::XmlLimits{}.bytes);
  }
  std::string text(length, ' ');
  TRY(context.control.recv(peer, kTextTag, std::as_writable_bytes(std::span(text))));
  return parseMachine(text, fmt::format("what rank {} on host {} knows of it", from.rank, from.hostName.data()));
}

/// All parts as one.
JoinedMachine fuseParts(std::span<JoinedMachine> parts) {
  std::vector<topo::XmlElement> systems;
  JoinedMachine joined;
  for (JoinedMachine& part : parts) {
    systems.push_back(std::move(part.elements));
    for (topo::PeerRefusal& refusal : part.peersRefused) {
      const auto same = [&](const topo::PeerRefusal& known) {
        return known.from == refusal.from && known.to == refusal.to;
      };
      if (std::none_of(joined.peersRefused.begin(), joined.peersRefused.end(), same)) {
        joined.peersRefused.push_back(std::move(refusal));
      }
    }
  }
  joined.elements = topo::fuseTopologies(systems);
  return joined;
}

/// The first rank of the node puts all parts together and sends the others what came of it.
Result<JoinedMachine> exchange(const TopologyContext& context, const JoinedMachine& own) {
  const std::span<const int> ranks = localRanks(context);
  const JoinedMachine part{partOf(own.elements, peerOf(context, context.layout.rank()), true), own.peersRefused};
  if (context.layout.localRank() != 0) {
    TRY(sendMachine(context.control, ranks.front(), part));
    return recvMachine(context, ranks.front());
  }
  std::vector<JoinedMachine> parts{part};
  for (const int rank : ranks.subspan(1)) {
    ASSIGN(JoinedMachine other, recvMachine(context, rank));
    parts.push_back(std::move(other));
  }
  JoinedMachine joined = fuseParts(parts);
  for (const int rank : ranks.subspan(1)) TRY(sendMachine(context.control, rank, joined));
  return joined;
}

/// Ranks whose GPUs are among the elements.
void collectRanks(const topo::XmlElement& element, std::set<int>& ranks) {
  if (element.name == "gpu") {
    if (const Result<int> rank = topo::intAttribute(element, "rank", -1); rank.ok()) ranks.insert(rank.value());
  }
  for (const topo::XmlElement& child : element.children) collectRanks(child, ranks);
}

}  // namespace

Result<std::optional<JoinedMachine>> joinMachines(const TopologyContext& context, const OwnMachine& own) {
  const std::span<const int> ranks = localRanks(context);
  const topo::PeerInfo& self = peerOf(context, context.layout.rank());
  JoinedMachine joined{*own.elements, own.peersRefused};
  topo::setHostHash(joined.elements, self.hostHash);
  const bool alike = std::all_of(ranks.begin(), ranks.end(),
                                 [&](int rank) { return peerOf(context, rank).machineHash == self.machineHash; });
  if (alike) {
    std::vector<topo::XmlElement> parts;
    // NICs come with the first part: those of the others would be the same.
    for (const int rank : ranks) {
      parts.push_back(partOf(joined.elements, peerOf(context, rank), rank == ranks.front()));
    }
    joined.elements = topo::fuseTopologies(parts);
  } else {
    ASSIGN(joined, exchange(context, joined));
  }
  std::set<int> found;
  collectRanks(joined.elements, found);
  const auto missing = std::find_if(ranks.begin(), ranks.end(), [&](int rank) { return !found.contains(rank); });
  if (missing == ranks.end()) return std::optional(std::move(joined));
  const topo::PeerInfo& absent = peerOf(context, *missing);
  info(kGraph, "The GPU of rank {} on host {} (bus id {}) is not among what is known of the machine", absent.rank,
       absent.hostName.data(), topo::busIdText(static_cast<std::uint64_t>(absent.busId)));
  return std::optional<JoinedMachine>();
}

Result<std::optional<topo::Topology>> buildHostTopology(const TopologyContext& context, const JoinedMachine& joined) {
  const char* host = peerOf(context, context.layout.rank()).hostName.data();
  topo::TopologyUse use;
  const std::span<const int> ranks = localRanks(context);
  // Not by index: in containers each GPU may be NVML's first.
  use.ranks.assign(ranks.begin(), ranks.end());
  use.interNode = context.layout.nNodes() > 1;
  use.rank = context.layout.localRank();
  topo::PathSettings paths = context.settings.paths;
  paths.p2p.refused = joined.peersRefused;
  paths.p2p.host = host;
  ASSIGN(topo::Topology topology, topo::buildTopology(joined.elements, use, paths));
  const bool together =
      std::all_of(topology.groupOf.begin(), topology.groupOf.end(), [&](int g) { return g == topology.group; });
  if (together) return std::optional(std::move(topology));
  info(kGraph, "Only the network would join all GPUs of host {}: its machine is not searched", host);
  return std::optional<topo::Topology>();
}

}  // namespace tutti::comm
