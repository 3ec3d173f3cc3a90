// Graphs as a whole: create, ask, connect, instantiate, destroy; user objects.
#include "softgpu/runtime/api.h"

using namespace tutti::softgpu;

extern "C" {

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned int flags) {
  if (graph == nullptr) return keep(cudaErrorInvalidValue);
  return inContext([&] { return CU(cuGraphCreate, graph, flags); });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return inContext([&] { return CU(cuGraphDestroy, graph); });
}

cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph) {
  return inContext([&] { return CU(cuGraphClone, clone, graph); });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return inContext([&] { return CU(cuGraphGetNodes, graph, nodes, count); });
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return inContext([&] { return CU(cuGraphGetRootNodes, graph, nodes, count); });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  if (exec == nullptr) return keep(cudaErrorInvalidValue);
  return inContext([&] { return CU(cuGraphInstantiateWithFlags, exec, graph, flags); });
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return cudaGraphInstantiate(exec, graph, flags);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return inContext([&] { return CU(cuGraphExecDestroy, exec); });
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t* object, void* pointer, cudaHostFn_t destroy, unsigned int count,
                                 unsigned int flags) {
  return inContext([&] { return CU(cuUserObjectCreate, object, pointer, destroy, count, flags); });
}

cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned int count) {
  return inContext([&] { return CU(cuUserObjectRetain, object, count); });
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned int count) {
  return inContext([&] { return CU(cuUserObjectRelease, object, count); });
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned int count,
                                      unsigned int flags) {
  return inContext([&] { return CU(cuGraphRetainUserObject, graph, object, count, flags); });
}

cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned int count) {
  return inContext([&] { return CU(cuGraphReleaseUserObject, graph, object, count); });
}

}  // extern "C"
