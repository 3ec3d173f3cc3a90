// Graphs of operations, their executable copies, and the objects whose life they extend.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "softgpu/exec/operation.h"
#include "softgpu/memory/cuda_types.h"

namespace tutti::softgpu {

class Context;
class Graph;
struct Marker;

/// A CUuserObject: destroyed when the last reference of the program or a graph goes, whoever drops it, on the machine's
/// thread for that: the destructor is the application's, and may take locks that the dropping thread holds.
struct UserObject {
  UserObject(void* pointer, CUhostFn destroyFunction) : object(pointer), destroy(destroyFunction) {}
  ~UserObject();
  UserObject(const UserObject&) = delete;
  UserObject& operator=(const UserObject&) = delete;
  void* object;
  CUhostFn destroy;
  unsigned references = 0;  ///< the program's own
};

/// A CUgraphNode. Belongs to one graph.
struct Node {
  Graph* graph = nullptr;
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  Operation operation;
  Context* context = nullptr;
  std::vector<Node*> after;  ///< dependencies
  std::uint64_t id = 0;      ///< the same in clones and executable copies
};

/// A CUgraph. Guarded by the machine's lock.
class Graph {
 public:
  Node* add(CUgraphNodeType type, const Operation& operation, Context* context, const std::vector<Node*>& after);
  /// Nodes in an order in which each comes after its dependencies; empty when there is a cycle and the graph is not.
  std::vector<const Node*> sorted() const;
  std::shared_ptr<Graph> clone() const;
  bool contains(const Node* node) const;
  Node* findById(std::uint64_t id) const;
  void remove(Node* node);
  const std::vector<std::unique_ptr<Node>>& nodes() const { return nodes_; }

  std::vector<std::shared_ptr<UserObject>> kept;  ///< one entry per reference

 private:
  std::vector<std::unique_ptr<Node>> nodes_;
};

/// A CUgraphExec.
struct GraphExec {
  std::shared_ptr<Graph> graph;
  std::shared_ptr<Marker> lastLaunch;  ///< launches of one executable graph do not overlap
};

/// The whole graph as one task; the machine's lock is held.
std::unique_ptr<Task> makeGraphTask(std::shared_ptr<const Graph> graph, Context& context,
                                    std::shared_ptr<Marker> before, std::shared_ptr<Marker> done);

}  // namespace tutti::softgpu
