// The stages of init that look at machines: what is this rank's host, what do its node's ranks have of it together,
// which graphs are there, what can all nodes do. Collective stages take a control channel and can be tested alone.
//
//   readMachine      this rank:        files, detection -> elements
//   findGraphs       ranks of a node:  one machine of all their elements -> ways -> graphs, or a file's
//                    all ranks:        words about the graphs -> agreement
//
// A rank that knows nothing of its machine leaves all without graphs: then rings follow the ranks' numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/control_channel.h"
#include "base/status.h"
#include "comm/network/nics.h"
#include "comm/settings/topology_settings.h"
#include "gpu/driver.h"
#include "topo/channels/graph_agreement.h"
#include "topo/channels/inter_node.h"
#include "topo/detect/detect.h"
#include "topo/machine/peer_info.h"
#include "topo/machine/peer_refusal.h"
#include "topo/machine/rank_layout.h"
#include "topo/search/search.h"
#include "topo/search/topology.h"
#include "topo/xml/xml.h"

namespace tutti::comm {

/// What a rank knows of its host's hardware.
struct OwnMachine {
  std::optional<topo::XmlElement> elements;  ///< a <system>; empty: nothing
  std::vector<topo::PeerRefusal> peersRefused;
  std::uint64_t hash = 0;  ///< of both, never 0 if there is something: PeerInfo::machineHash
};

/// With its hash.
OwnMachine ownMachine(topo::XmlElement elements, std::vector<topo::PeerRefusal> peersRefused = {});

/// Reads NCCL_TOPO_FILE and asks the machine. On the software GPU there is nothing to ask but SOFTGPU_TOPO, whose NICs
/// stay; elsewhere `nets` takes the place of all NICs that a file names. Errors: ncclInvalidUsage for that file where
/// it is broken, with its line. Without it, what goes wrong is logged, and nothing is known.
Result<OwnMachine> readMachine(const gpu::Driver& driver, const TopologySettings& settings,
                               const std::optional<std::vector<topo::NetDeviceFacts>>& nets = {});

/// Borrowed for a call.
struct TopologyContext {
  ControlChannel& control;
  std::span<const topo::PeerInfo> peers;
  const topo::RankLayout& layout;
  const TopologySettings& settings;
};

/// Everybody's words about the graphs of their nodes.
struct CommGraphs {
  std::vector<topo::GraphReport> words;  ///< by rank; empty: not known
  topo::AgreedGraphs agreed;             ///< equal on all ranks
  OwnNics nics;                          ///< of this rank

  bool known() const { return !words.empty(); }
};

/// Collective. Writes the files that are asked for, says at GRAPH what was found.
/// Errors: ncclInvalidUsage: a file that is broken, elements of NCCL_TOPO_FILE that make no machine, or graphs that
/// differ between two ranks of a node; ncclSystemError: a file that cannot be read or written; ncclUnhandledCudaError:
/// GPUs that NVLink joins and the driver keeps apart (NCCL_IGNORE_DISABLED_P2P).
Result<CommGraphs> findGraphs(const TopologyContext& context, const OwnMachine& own);

/// This rank's channels: along the graphs where they are known, else along the ranks' numbers.
Result<topo::RankChannels> channelsOf(const CommGraphs& graphs, const topo::RankLayout& layout, int nChannels);

}  // namespace tutti::comm
