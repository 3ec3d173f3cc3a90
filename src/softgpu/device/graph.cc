#include "softgpu/device/graph.h"

#include <algorithm>

#include "softgpu/device/machine.h"
#include "softgpu/device/tasks.h"

namespace tutti::softgpu {
namespace {

/// Runs the nodes of a graph as their dependencies allow, all on the launching device's engine.
class GraphTask : public Task {
 public:
  struct Item {
    std::unique_ptr<Task> task;
    std::vector<std::size_t> after;
    bool done = false;
  };
  GraphTask(std::shared_ptr<const Graph> graph, std::vector<Item> items, std::shared_ptr<Marker> before,
            std::shared_ptr<Marker> done)
      : graph_(std::move(graph)), items_(std::move(items)), before_(std::move(before)), done_(std::move(done)) {}

  Step step(Engine& engine) override {
    if (before_ != nullptr && !before_->done.load(std::memory_order_acquire)) return Step::Polling;
    Step result = Step::Blocked;
    std::size_t left = 0;
    for (Item& item : items_) {
      if (item.done) continue;
      ++left;
      if (!std::all_of(item.after.begin(), item.after.end(), [this](std::size_t i) { return items_[i].done; }))
        continue;
      const Step step = item.task->step(engine);
      if (step == Step::Done) {
        item.done = true;
        --left;
      }
      if (step == Step::Done || step == Step::Progress) result = Step::Progress;
      if (step == Step::Polling && result == Step::Blocked) result = Step::Polling;
    }
    if (left != 0) return result;
    if (done_ != nullptr) done_->complete();
    return Step::Done;
  }

  void abandon() override {
    for (Item& item : items_) {
      if (!item.done) item.task->abandon();
    }
    if (done_ != nullptr) done_->complete();
  }

 private:
  std::shared_ptr<const Graph> graph_;  // its user objects live until the work is done
  std::vector<Item> items_;
  std::shared_ptr<Marker> before_;
  std::shared_ptr<Marker> done_;
};

}  // namespace

UserObject::~UserObject() {
  machine().destructors.post(machine().hostCalls, {destroy, object});
}

Node* Graph::add(CUgraphNodeType type, const Operation& operation, Context* context, const std::vector<Node*>& after) {
  static std::atomic<std::uint64_t> ids{0};
  auto node = std::make_unique<Node>();
  node->graph = this;
  node->type = type;
  node->operation = operation;
  node->context = context;
  node->after = after;
  node->id = ids.fetch_add(1) + 1;
  nodes_.push_back(std::move(node));
  return nodes_.back().get();
}

std::vector<const Node*> Graph::sorted() const {
  std::vector<const Node*> order;
  std::map<const Node*, bool> placed;
  for (bool found = true; found && order.size() < nodes_.size();) {
    found = false;
    for (const auto& node : nodes_) {
      if (placed[node.get()]) continue;
      if (!std::all_of(node->after.begin(), node->after.end(), [&](Node* n) { return placed[n]; })) continue;
      placed[node.get()] = true;
      order.push_back(node.get());
      found = true;
    }
  }
  if (order.size() < nodes_.size()) order.clear();
  return order;
}

std::shared_ptr<Graph> Graph::clone() const {
  auto copy = std::make_shared<Graph>();
  std::map<const Node*, Node*> twin;
  for (const auto& node : nodes_) {
    Node* made = copy->add(node->type, node->operation, node->context, {});
    made->id = node->id;
    if (const auto* child = std::get_if<GraphOperation>(&node->operation)) {
      made->operation = GraphOperation{child->graph->clone()};
    }
    twin[node.get()] = made;
  }
  for (const auto& node : nodes_) {
    for (Node* before : node->after) twin[node.get()]->after.push_back(twin[before]);
  }
  copy->kept = kept;
  return copy;
}

bool Graph::contains(const Node* node) const {
  return std::any_of(nodes_.begin(), nodes_.end(), [node](const auto& own) { return own.get() == node; });
}

Node* Graph::findById(std::uint64_t id) const {
  for (const auto& node : nodes_) {
    if (node->id == id) return node.get();
  }
  return nullptr;
}

void Graph::remove(Node* node) {
  for (const auto& other : nodes_) std::erase(other->after, node);
  std::erase_if(nodes_, [node](const auto& own) { return own.get() == node; });
}

std::unique_ptr<Task> makeGraphTask(std::shared_ptr<const Graph> graph, Context& context,
                                    std::shared_ptr<Marker> before, std::shared_ptr<Marker> done) {
  std::map<const Node*, std::size_t> position;
  std::vector<GraphTask::Item> items;
  for (const Node* node : graph->sorted()) {
    GraphTask::Item item;
    item.task = makeTask(node->operation, node->context == nullptr ? context : *node->context);
    for (Node* before_ : node->after) item.after.push_back(position.at(before_));
    position[node] = items.size();
    items.push_back(std::move(item));
  }
  return std::make_unique<GraphTask>(std::move(graph), std::move(items), std::move(before), std::move(done));
}

}  // namespace tutti::softgpu
