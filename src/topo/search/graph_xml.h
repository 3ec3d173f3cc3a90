// Graph files: what a search found as NCCL_GRAPH_DUMP_FILE writes it, and NCCL_GRAPH_FILE in place of a search.
#pragma once

#include <string>

#include "base/status.h"
#include "topo/machine/machine.h"
#include "topo/search/graph.h"
#include "topo/search/search.h"
#include "topo/xml/xml.h"

namespace tutti::topo {

/// All graphs as <graphs version="1">; those that were not computed have no channels. GPUs and NICs are named by host
/// and index (system << 56 | dev, hexadecimal), GPUs also by rank.
/// Errors: ncclInvalidUsage for a machine of more than 256 hosts, whose devices cannot be told apart like that.
Result<XmlElement> writeGraphs(const Machine& machine, const GraphSet& graphs);

/// Graphs of a file for `machine`; graphs that the file does not have come without channels. `rank` of a <gpu>, where
/// it is there, wins over `dev`. NVLS channels may name their head alone. How many channels a graph has is the number
/// of its <channel>. `interNode`: the communicator spans several nodes, so that channels enter and leave by NICs.
/// Errors: ncclInvalidUsage with file, line, element and reason: another version, a machine of more than 256 hosts, no
/// such GPU or NIC, a pattern that the algorithm cannot use, a channel that leaves out a GPU or has one twice, more
/// than 64 channels; with `interNode` a channel without <net> or a speedinter of 0, unless this and typeinter="DIS" say
/// that no NIC is reached; without it a channel with <net>.
Result<GraphSet> readGraphs(const Machine& machine, const XmlElement& graphs, bool interNode);

/// readXmlFile (`asked` as there), then readGraphs. Errors: also those of readXmlText.
Result<GraphSet> readGraphFile(const std::string& path, const Machine& machine, bool interNode,
                               std::string_view asked = {});

/// Takes the place of a graph that was searched? `crossNic`: NCCL_CROSS_NIC.
bool replacesSearch(const Graph& fromFile, int crossNic);

}  // namespace tutti::topo
