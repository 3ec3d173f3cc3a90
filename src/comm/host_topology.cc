#include "comm/host_topology.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/log.h"
#include "topo/fuse.h"
#include "topo/topology_xml.h"
#include "topo/xml_values.h"

namespace tutti {

namespace {

/// Tags of the control channel: a text's length, then the text.
constexpr int kLengthTag = 0x2000;
constexpr int kTextTag = 0x2001;

std::span<const int> localRanks(const TopologyContext& context) {
  return context.layout.ranksOnNode(context.layout.nodeOf(context.layout.rank()));
}

const PeerInfo& peerOf(const TopologyContext& context, int rank) {
  return context.peers[static_cast<std::size_t>(rank)];
}

/// What one rank uses of the elements.
XmlElement partOf(const XmlElement& elements, const PeerInfo& peer) {
  UsedLeaves used;
  used.gpus.push_back({.busId = static_cast<std::uint64_t>(peer.busId), .rank = peer.rank});
  used.allNets = true;
  return trimTopology(elements, used);
}

Status sendElements(ControlChannel& control, int peer, const XmlElement& elements) {
  const std::string text = writeXml(elements);
  const std::uint64_t length = text.size();
  TRY(control.send(peer, kLengthTag, std::as_bytes(std::span(&length, 1))));
  return control.send(peer, kTextTag, std::as_bytes(std::span(text)));
}

Result<XmlElement> recvElements(const TopologyContext& context, int peer) {
  const PeerInfo& from = peerOf(context, peer);
  std::uint64_t length = 0;
  TRY(context.control.recv(peer, kLengthTag, std::as_writable_bytes(std::span(&length, 1))));
  if (length > XmlLimits{}.bytes) {
    return fail(ncclInternalError, "Rank {} on host {} describes its machine in {} bytes", from.rank,
                from.hostName.data(), length);
  }
  std::string text(length, ' ');
  TRY(context.control.recv(peer, kTextTag, std::as_writable_bytes(std::span(text))));
  return parseTopology(text, fmt::format("what rank {} on host {} knows of it", from.rank, from.hostName.data()));
}

/// The first rank of the node puts all parts together and sends the others what came of it.
Result<XmlElement> exchange(const TopologyContext& context, const XmlElement& own) {
  const std::span<const int> ranks = localRanks(context);
  const XmlElement part = partOf(own, peerOf(context, context.layout.rank()));
  if (context.layout.localRank() != 0) {
    TRY(sendElements(context.control, ranks.front(), part));
    return recvElements(context, ranks.front());
  }
  std::vector<XmlElement> parts{part};
  for (const int rank : ranks.subspan(1)) {
    ASSIGN(XmlElement other, recvElements(context, rank));
    parts.push_back(std::move(other));
  }
  XmlElement fused = fuseTopologies(parts);
  for (const int rank : ranks.subspan(1)) TRY(sendElements(context.control, rank, fused));
  return fused;
}

/// `dev` of the GPU of each local rank, by local rank; -1: it has none.
void findDevices(const XmlElement& element, std::span<const int> ranks, std::vector<int>& devices) {
  if (element.name == "gpu") {
    const Result<int> rank = intAttribute(element, "rank", -1);
    const Result<int> dev = intAttribute(element, "dev", -1);
    const auto at = rank.ok() ? std::find(ranks.begin(), ranks.end(), rank.value()) : ranks.end();
    if (at != ranks.end() && dev.ok()) devices[static_cast<std::size_t>(at - ranks.begin())] = dev.value();
  }
  for (const XmlElement& child : element.children) findDevices(child, ranks, devices);
}

std::vector<int> devicesOf(const TopologyContext& context, const XmlElement& elements) {
  std::vector<int> devices(localRanks(context).size(), -1);
  findDevices(elements, localRanks(context), devices);
  return devices;
}

}  // namespace

Result<std::optional<XmlElement>> joinElements(const TopologyContext& context, const XmlElement& own) {
  const std::span<const int> ranks = localRanks(context);
  const PeerInfo& self = peerOf(context, context.layout.rank());
  XmlElement elements = own;
  setHostHash(elements, self.hostHash);
  const bool alike = std::all_of(ranks.begin(), ranks.end(),
                                 [&](int rank) { return peerOf(context, rank).machineHash == self.machineHash; });
  XmlElement joined;
  if (alike) {
    std::vector<XmlElement> parts;
    for (const int rank : ranks) parts.push_back(partOf(elements, peerOf(context, rank)));
    joined = fuseTopologies(parts);
  } else {
    ASSIGN(joined, exchange(context, elements));
  }
  const std::vector<int> devices = devicesOf(context, joined);
  const auto missing = std::find(devices.begin(), devices.end(), -1);
  if (missing == devices.end()) return std::optional(std::move(joined));
  const PeerInfo& absent = peerOf(context, ranks[static_cast<std::size_t>(missing - devices.begin())]);
  info(kGraph, "The GPU of rank {} on host {} (bus id {}) is not among what is known of the machine", absent.rank,
       absent.hostName.data(), busIdText(static_cast<std::uint64_t>(absent.busId)));
  return std::optional<XmlElement>();
}

Result<std::optional<Topology>> buildHostTopology(const TopologyContext& context, const XmlElement& elements,
                                                  std::span<const std::pair<int, int>> peersRefused) {
  TopologyUse use;
  use.gpus = devicesOf(context, elements);
  use.interNode = context.layout.nNodes() > 1;
  use.rank = context.layout.localRank();
  PathSettings paths = context.settings.paths;
  paths.p2p.refused.assign(peersRefused.begin(), peersRefused.end());
  ASSIGN(Topology topology, buildTopology(elements, use, paths));
  const bool together =
      std::all_of(topology.groupOf.begin(), topology.groupOf.end(), [&](int g) { return g == topology.group; });
  if (together) return std::optional(std::move(topology));
  info(kGraph, "Only the network would join all GPUs of host {}: its machine is not searched",
       peerOf(context, context.layout.rank()).hostName.data());
  return std::optional<Topology>();
}

}  // namespace tutti
