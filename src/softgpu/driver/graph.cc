// Graphs: life, structure, instances, launches and user objects.
#include "softgpu/device/graph.h"

#include <algorithm>

#include "softgpu/device/capture.h"
#include "softgpu/driver/graph_support.h"

using namespace tutti::softgpu;

CUresult tutti::softgpu::giveNodes(const std::vector<const Node*>& nodes, CUgraphNode* out, size_t* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t room = out == nullptr ? 0 : *count;
  for (std::size_t i = 0; i < room; ++i) out[i] = i < nodes.size() ? handleOf(nodes[i]) : nullptr;
  *count = out == nullptr ? nodes.size() : std::min(room, nodes.size());
  return CUDA_SUCCESS;
}

namespace {

CUresult instantiate(CUgraphExec* result, CUgraph handle) {
  constexpr const char* kName = "cuGraphInstantiate";
  if (const CUresult error = call(kName, refuseUnsafeCall); error != CUDA_SUCCESS) return error;
  return withGraph(kName, handle, [&](Graph& graph) -> CUresult {
    if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!graph.nodes().empty() && graph.sorted().empty()) return CUDA_ERROR_INVALID_VALUE;
    auto exec = std::make_shared<GraphExec>();
    exec->graph = graph.clone();
    *result = reinterpret_cast<CUgraphExec>(machine().execs.add(std::move(exec)));
    return CUDA_SUCCESS;
  });
}

std::vector<const Node*> dependentsOf(const Node* node) {
  std::vector<const Node*> result;
  for (const auto& other : node->graph->nodes()) {
    if (std::find(other->after.begin(), other->after.end(), node) != other->after.end()) result.push_back(other.get());
  }
  return result;
}

/// Drops program references.
CUresult dropReferences(CUuserObject handle, unsigned count) {
  const auto object = machine().userObjects.find(handle);
  if (object == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard<std::mutex> guard(machine().lock);
  if (object->references < count) return CUDA_ERROR_INVALID_VALUE;
  object->references -= count;
  if (object->references == 0) machine().userObjects.take(handle);
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuGraphCreate(CUgraph* result, unsigned int flags) {
  return call("cuGraphCreate", [&]() -> CUresult {
    if (result == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    *result = reinterpret_cast<CUgraph>(machine().graphs.add(std::make_shared<Graph>()));
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphDestroy(CUgraph handle) {
  return call("cuGraphDestroy", [&]() -> CUresult {
    return machine().graphs.take(handle) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
  });
}

CUresult cuGraphClone(CUgraph* result, CUgraph handle) {
  return withGraph("cuGraphClone", handle, [&](Graph& graph) -> CUresult {
    if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *result = reinterpret_cast<CUgraph>(machine().graphs.add(graph.clone()));
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
  return withGraph("cuGraphGetNodes", handle, [&](Graph& graph) {
    std::vector<const Node*> all;
    for (const auto& node : graph.nodes()) all.push_back(node.get());
    return giveNodes(all, nodes, count);
  });
}

CUresult cuGraphGetRootNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
  return withGraph("cuGraphGetRootNodes", handle, [&](Graph& graph) {
    std::vector<const Node*> roots;
    for (const auto& node : graph.nodes()) {
      if (node->after.empty()) roots.push_back(node.get());
    }
    return giveNodes(roots, nodes, count);
  });
}

CUresult cuGraphGetEdges_v2(CUgraph handle, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data, size_t* count) {
  return withGraph("cuGraphGetEdges", handle, [&](Graph& graph) -> CUresult {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::size_t found = 0;
    for (const auto& node : graph.nodes()) {
      for (const Node* before : node->after) {
        if (from != nullptr && to != nullptr && found < *count) {
          from[found] = handleOf(before);
          to[found] = handleOf(node.get());
          if (data != nullptr) data[found] = {};
        }
        ++found;
      }
    }
    *count = from == nullptr ? found : std::min(found, *count);
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  if (node == nullptr || type == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *type = nodeOf(node)->type;
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* data, size_t* count) {
  return call("cuGraphNodeGetDependencies", [&]() -> CUresult {
    if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard<std::mutex> guard(machine().lock);
    const auto& after = nodeOf(node)->after;
    if (data != nullptr && count != nullptr) std::fill_n(data, std::min(*count, after.size()), CUgraphEdgeData{});
    return giveNodes({after.begin(), after.end()}, nodes, count);
  });
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* data, size_t* count) {
  return call("cuGraphNodeGetDependentNodes", [&]() -> CUresult {
    if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard<std::mutex> guard(machine().lock);
    const auto dependents = dependentsOf(nodeOf(node));
    if (data != nullptr && count != nullptr) std::fill_n(data, std::min(*count, dependents.size()), CUgraphEdgeData{});
    return giveNodes(dependents, nodes, count);
  });
}

CUresult cuGraphAddDependencies_v2(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData*, size_t count) {
  return withGraph("cuGraphAddDependencies", handle, [&](Graph& graph) -> CUresult {
    for (std::size_t i = 0; i < count; ++i) {
      if (!graph.contains(nodeOf(from[i])) || !graph.contains(nodeOf(to[i]))) return CUDA_ERROR_INVALID_VALUE;
    }
    for (std::size_t i = 0; i < count; ++i) nodeOf(to[i])->after.push_back(nodeOf(from[i]));
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphRemoveDependencies_v2(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                                      const CUgraphEdgeData*, size_t count) {
  return withGraph("cuGraphRemoveDependencies", handle, [&](Graph& graph) -> CUresult {
    for (std::size_t i = 0; i < count; ++i) {
      if (!graph.contains(nodeOf(to[i]))) return CUDA_ERROR_INVALID_VALUE;
      if (std::erase(nodeOf(to[i])->after, nodeOf(from[i])) == 0) return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphDestroyNode(CUgraphNode node) {
  return call("cuGraphDestroyNode", [&]() -> CUresult {
    if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard<std::mutex> guard(machine().lock);
    nodeOf(node)->graph->remove(nodeOf(node));
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* result, CUgraph graph, unsigned long long) {
  return instantiate(result, graph);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec* result, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  const CUresult error = instantiate(result, graph);
  if (params != nullptr) {
    params->result_out = error == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
  }
  return error;
}

CUresult cuGraphExecDestroy(CUgraphExec handle) {
  return call("cuGraphExecDestroy", [&]() -> CUresult {
    return machine().execs.take(handle) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
  });
}

CUresult cuGraphUpload(CUgraphExec, CUstream) {
  return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec handle, CUstream streamHandle) {
  return callOnStream("cuGraphLaunch", streamHandle, [&](Stream& stream) -> CUresult {
    const std::shared_ptr<GraphExec> exec = machine().execs.find(handle);
    if (exec == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    std::unique_lock<std::mutex> guard(machine().lock);
    if (stream.capture != nullptr) {
      guard.unlock();
      return stream.submit(GraphOperation{exec->graph});
    }
    const auto done = std::make_shared<Marker>();
    stream.append(makeGraphTask(exec->graph, stream.context(), exec->lastLaunch, done));
    exec->lastLaunch = done;
    return CUDA_SUCCESS;
  });
}

CUresult cuUserObjectCreate(CUuserObject* result, void* object, CUhostFn destroy, unsigned int references,
                            unsigned int) {
  return call("cuUserObjectCreate", [&]() -> CUresult {
    if (result == nullptr || destroy == nullptr || references == 0) return CUDA_ERROR_INVALID_VALUE;
    auto made = std::make_shared<UserObject>(object, destroy);
    made->references = references;
    *result = reinterpret_cast<CUuserObject>(machine().userObjects.add(std::move(made)));
    return CUDA_SUCCESS;
  });
}

CUresult cuUserObjectRetain(CUuserObject handle, unsigned int count) {
  return call("cuUserObjectRetain", [&]() -> CUresult {
    const auto object = machine().userObjects.find(handle);
    if (object == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard<std::mutex> guard(machine().lock);
    object->references += count;
    return CUDA_SUCCESS;
  });
}

CUresult cuUserObjectRelease(CUuserObject handle, unsigned int count) {
  return call("cuUserObjectRelease", [&]() -> CUresult { return dropReferences(handle, count); });
}

CUresult cuGraphRetainUserObject(CUgraph handle, CUuserObject objectHandle, unsigned int count, unsigned int flags) {
  return withGraph("cuGraphRetainUserObject", handle, [&](Graph& graph) -> CUresult {
    const auto object = machine().userObjects.find(objectHandle);
    if (object == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const bool move = (flags & CU_GRAPH_USER_OBJECT_MOVE) != 0;
    if (move && object->references < count) return CUDA_ERROR_INVALID_VALUE;
    graph.kept.insert(graph.kept.end(), count, object);
    if (!move) return CUDA_SUCCESS;
    object->references -= count;
    if (object->references == 0) machine().userObjects.take(objectHandle);
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphReleaseUserObject(CUgraph handle, CUuserObject objectHandle, unsigned int count) {
  std::vector<std::shared_ptr<UserObject>> dropped;
  return withGraph("cuGraphReleaseUserObject", handle, [&](Graph& graph) -> CUresult {
    const void* wanted = objectHandle;
    for (auto it = graph.kept.begin(); it != graph.kept.end() && dropped.size() < count;) {
      if (it->get() != wanted) {
        ++it;
        continue;
      }
      dropped.push_back(std::move(*it));
      it = graph.kept.erase(it);
    }
    return dropped.size() == count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

}  // extern "C"
