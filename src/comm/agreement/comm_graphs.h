// What is known of the graphs of all nodes: the ranks of a node look at their machine together, and all ranks agree.
// Takes values and a control channel, and can be tested alone.
//
//   readMachine      this rank:        files, detection -> elements (own_machine.h)
//   findGraphs       ranks of a node:  one machine of all their elements -> paths -> graphs, or a file's
//                    all ranks:        words about the graphs -> agreement
//
// A rank that knows nothing of its machine leaves all without graphs: then rings follow the ranks' numbers.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "comm/collnet/node_heads.h"
#include "comm/network/own_nics.h"
#include "topo/channels/graph_agreement.h"
#include "topo/channels/rank_channels.h"

namespace tutti {
class ControlChannel;
}
namespace tutti::topo {
class RankLayout;
struct PeerInfo;
}  // namespace tutti::topo

namespace tutti::comm {

struct OwnMachine;
struct TopologySettings;

/// Borrowed for a call.
struct TopologyContext {
  ControlChannel& control;
  std::span<const topo::PeerInfo> peers;
  const topo::RankLayout& layout;
  const TopologySettings& settings;
  bool collNet = false;  ///< all ranks want its graphs
};

/// Everybody's words about the graphs of their nodes.
struct CommGraphs {
  std::vector<topo::GraphReport> words;  ///< by rank; empty: not known
  topo::AgreedGraphs agreed;             ///< equal on all ranks
  OwnNics nics;                          ///< of this rank
  NodeHeads heads;                       ///< of its node, where collNet's graphs are wanted

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
