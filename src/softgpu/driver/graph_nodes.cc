// Adding nodes to graphs, and changing them in executable ones.
#include "softgpu/driver/graph_support.h"

using namespace tutti::softgpu;

namespace {

struct NewNode {
  CUgraphNode* result;
  CUgraph graph;
  const CUgraphNode* after;
  size_t afterCount;
};

CUresult add(const char* name, const NewNode& wanted, CUgraphNodeType type, const Operation& operation,
             Context* context) {
  return withGraph(name, wanted.graph, [&](Graph& graph) -> CUresult {
    if (wanted.result == nullptr || (wanted.after == nullptr && wanted.afterCount != 0))
      return CUDA_ERROR_INVALID_VALUE;
    std::vector<Node*> after;
    for (std::size_t i = 0; i < wanted.afterCount; ++i) {
      if (!graph.contains(nodeOf(wanted.after[i]))) return CUDA_ERROR_INVALID_VALUE;
      after.push_back(nodeOf(wanted.after[i]));
    }
    *wanted.result = handleOf(graph.add(type, operation, context, after));
    return CUDA_SUCCESS;
  });
}

/// A node that records an event or waits for it.
template <class EventOperation>
CUresult addEvent(const char* name, const NewNode& wanted, CUgraphNodeType type, CUevent event) {
  if (!machineExists()) return CUDA_ERROR_NOT_INITIALIZED;
  auto found = machine().events.find(event);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Context* context = &found->context();
  return add(name, wanted, type, EventOperation{std::move(found)}, context);
}

Context* orCurrent(CUcontext handle) {
  return handle == nullptr ? currentContext() : contextOf(handle);
}

FillOperation fillOf(const CUDA_MEMSET_NODE_PARAMS& p) {
  return {bytesOf(p.dst), p.value, p.elementSize, p.width, p.height, p.height == 1 ? p.width * p.elementSize : p.pitch};
}

CUresult kernelOf(const CUDA_KERNEL_NODE_PARAMS& p, KernelOperation* kernel) {
  if (!machineExists()) return CUDA_ERROR_NOT_INITIALIZED;
  const LaunchShape shape = {{p.gridDimX, p.gridDimY, p.gridDimZ},
                             {p.blockDimX, p.blockDimY, p.blockDimZ},
                             p.sharedMemBytes,
                             p.kernelParams,
                             p.extra};
  const CUfunction function = p.func != nullptr ? p.func : reinterpret_cast<CUfunction>(p.kern);
  return kernelOperation(function, orCurrent(p.ctx), shape, kernel);
}

/// Replaces the operation of the node's twin in an executable graph, by one of the same kind.
CUresult replace(const char* name, CUgraphExec handle, CUgraphNode node, const Operation& operation) {
  return call(name, [&]() -> CUresult {
    const auto exec = machine().execs.find(handle);
    if (exec == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard<std::mutex> guard(machine().lock);
    Node* twin = exec->graph->findById(nodeOf(node)->id);
    if (twin == nullptr || twin->operation.index() != operation.index()) return CUDA_ERROR_INVALID_VALUE;
    twin->operation = operation;
    return CUDA_SUCCESS;
  });
}

}  // namespace

extern "C" {

CUresult cuGraphAddEmptyNode(CUgraphNode* result, CUgraph graph, const CUgraphNode* after, size_t count) {
  return add("cuGraphAddEmptyNode", {result, graph, after, count}, CU_GRAPH_NODE_TYPE_EMPTY, EmptyOperation{}, nullptr);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode* result, CUgraph graph, const CUgraphNode* after, size_t count,
                              const CUDA_MEMCPY3D* params, CUcontext context) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CopyOperation copy;
  if (const CUresult error = rowsOf(*params, &copy); error != CUDA_SUCCESS) return error;
  return add("cuGraphAddMemcpyNode", {result, graph, after, count}, CU_GRAPH_NODE_TYPE_MEMCPY, copy,
             orCurrent(context));
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* params, CUcontext) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CopyOperation copy;
  if (const CUresult error = rowsOf(*params, &copy); error != CUDA_SUCCESS) return error;
  return replace("cuGraphExecMemcpyNodeSetParams", exec, node, copy);
}

CUresult cuGraphAddMemsetNode(CUgraphNode* result, CUgraph graph, const CUgraphNode* after, size_t count,
                              const CUDA_MEMSET_NODE_PARAMS* params, CUcontext context) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add("cuGraphAddMemsetNode", {result, graph, after, count}, CU_GRAPH_NODE_TYPE_MEMSET, fillOf(*params),
             orCurrent(context));
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* params,
                                        CUcontext) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return replace("cuGraphExecMemsetNodeSetParams", exec, node, fillOf(*params));
}

CUresult cuGraphAddHostNode(CUgraphNode* result, CUgraph graph, const CUgraphNode* after, size_t count,
                            const CUDA_HOST_NODE_PARAMS* params) {
  if (params == nullptr || params->fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add("cuGraphAddHostNode", {result, graph, after, count}, CU_GRAPH_NODE_TYPE_HOST,
             HostOperation{params->fn, params->userData}, nullptr);
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS* params) {
  if (params == nullptr || params->fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return replace("cuGraphExecHostNodeSetParams", exec, node, HostOperation{params->fn, params->userData});
}

CUresult cuGraphAddEventRecordNode(CUgraphNode* result, CUgraph graph, const CUgraphNode* after, size_t count,
                                   CUevent event) {
  return addEvent<RecordOperation>("cuGraphAddEventRecordNode", {result, graph, after, count},
                                   CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

CUresult cuGraphAddEventWaitNode(CUgraphNode* result, CUgraph graph, const CUgraphNode* after, size_t count,
                                 CUevent event) {
  return addEvent<WaitOperation>("cuGraphAddEventWaitNode", {result, graph, after, count},
                                 CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

CUresult cuGraphAddChildGraphNode(CUgraphNode* result, CUgraph graph, const CUgraphNode* after, size_t count,
                                  CUgraph child) {
  if (!machineExists()) return CUDA_ERROR_NOT_INITIALIZED;
  const auto found = machine().graphs.find(child);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return add("cuGraphAddChildGraphNode", {result, graph, after, count}, CU_GRAPH_NODE_TYPE_GRAPH,
             GraphOperation{found->clone()}, currentContext());
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode* result, CUgraph graph, const CUgraphNode* after, size_t count,
                                 const CUDA_KERNEL_NODE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  KernelOperation kernel;
  if (const CUresult error = kernelOf(*params, &kernel); error != CUDA_SUCCESS) return error;
  return add("cuGraphAddKernelNode", {result, graph, after, count}, CU_GRAPH_NODE_TYPE_KERNEL, kernel,
             orCurrent(params->ctx));
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  KernelOperation kernel;
  if (const CUresult error = kernelOf(*params, &kernel); error != CUDA_SUCCESS) return error;
  return replace("cuGraphExecKernelNodeSetParams", exec, node, kernel);
}

}  // extern "C"
