// The edges of graphs, which carry data.
#include "softgpu/runtime/cuda13/names.h"

using namespace tutti::softgpu;

static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData));

namespace {

CUgraphEdgeData* edgesOf(cudaGraphEdgeData* edges) {
  return reinterpret_cast<CUgraphEdgeData*>(edges);
}
const CUgraphEdgeData* edgesOf(const cudaGraphEdgeData* edges) {
  return reinterpret_cast<const CUgraphEdgeData*>(edges);
}

}  // namespace

extern "C" {

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, cudaGraphEdgeData* edges,
                              size_t* count) {
  return inContext([&] { return CU(cuGraphGetEdges, graph, from, to, edgesOf(edges), count); });
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                     const cudaGraphEdgeData* edges, size_t count) {
  return inContext([&] { return CU(cuGraphAddDependencies, graph, from, to, edgesOf(edges), count); });
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                        const cudaGraphEdgeData* edges, size_t count) {
  return inContext([&] { return CU(cuGraphRemoveDependencies, graph, from, to, edgesOf(edges), count); });
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData* edges,
                                         size_t* count) {
  return inContext([&] { return CU(cuGraphNodeGetDependencies, node, nodes, edgesOf(edges), count); });
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData* edges,
                                           size_t* count) {
  return inContext([&] { return CU(cuGraphNodeGetDependentNodes, node, nodes, edgesOf(edges), count); });
}

}  // extern "C"
