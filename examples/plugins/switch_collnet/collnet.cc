#include "collnet.h"

#include <cstring>
#include <random>

#include "connection.h"

namespace switch_collnet::coll {

namespace {

/// Objects that callers have addresses of. What is closed is not found any more, so a call after the end is noticed
/// instead of going wrong; and what a call has found stays until the call returns.
template <class T>
class Live {
 public:
  void* add(std::shared_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    void* const address = object.get();
    objects_[address] = std::move(object);
    return address;
  }
  std::shared_ptr<T> find(void* address) {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(address);
    return found != objects_.end() ? found->second : nullptr;
  }
  std::shared_ptr<T> remove(void* address) {
    const std::lock_guard lock(mutex_);
    auto node = objects_.extract(address);
    return node.empty() ? nullptr : std::move(node.mapped());
  }
  template <class Predicate>
  std::shared_ptr<T> search(Predicate predicate) {
    const std::lock_guard lock(mutex_);
    for (const auto& [address, object] : objects_) {
      if (predicate(*object)) return object;
    }
    return nullptr;
  }

 private:
  std::mutex mutex_;
  std::map<void*, std::shared_ptr<T>> objects_;
};

Live<Context> contexts;
Live<Listener> listeners;
Live<Connection> connections;
Context withoutContext;  // of versions 6 to 10

ncclResult_t notThere(const char* call, const char* what) {
  return misused(call, std::string("that is no ") + what + ", or it was closed");
}

/// Both halves of what nobody can guess.
void fillRandom(std::uint64_t (&random)[2]) {
  std::random_device device;
  for (std::uint64_t& word : random) word = std::uint64_t{device()} << 32 | device();
}

Operation operationOf(Collective collective, const Window& window) {
  return {.collective = collective,
          .bytesPerRank = window.bytesPerRank,
          .windowOffset = window.offset,
          .windowBytes = window.bytes};
}
const char* objection(const Window& window) {
  if (window.parts != 1) return "there must be one part";
  return window.partBytes != window.bytes ? "the part is not as long as the window" : nullptr;
}

}  // namespace

ncclResult_t init(void** context, ncclDebugLogger_t log) {
  if (const std::string why = start(log); !why.empty()) return failed(ncclInvalidUsage, "collNet init", why);
  Settings settings;
  if (const ncclResult_t code = mayCall("collNet init", "refuse-init", settings); code != ncclSuccess) return code;
  leaveOut();
  if (context != nullptr) *context = contexts.add(std::make_shared<Context>());
  return ncclSuccess;
}

ncclResult_t finalize(void* context) {
  const auto ended = contexts.remove(context);
  if (ended == nullptr) return notThere("finalize", "context");
  if (ended->listeners == 0 && ended->connections == 0 && ended->registrations == 0) return ncclSuccess;
  return misused("finalize", "still open: " + std::to_string(ended->listeners) + " listeners, " +
                                 std::to_string(ended->connections) + " connections, " +
                                 std::to_string(ended->registrations) + " registrations");
}

ncclResult_t listen(void* context, int device, void* handle, void** listener) {
  *listener = nullptr;
  const auto owner = contexts.find(context);
  if (context != nullptr && owner == nullptr) return notThere("listen", "context");
  if (device < 0 || device >= devices().coll) {
    return misused("listen", "there is no device " + std::to_string(device));
  }
  auto made = std::make_shared<Listener>();
  made->owner = owner;
  made->context = owner != nullptr ? owner.get() : &withoutContext;
  made->device = device;
  if (const ncclResult_t code = mayCall("listen", "refuse-listen", made->settings); code != ncclSuccess) return code;
  std::string why;
  Handle own{};
  fillRandom(own.random);
  if (!made->settings.switchAt.known()) {
    made->ownSwitch = OwnSwitch::get(made->settings.host, why);
    if (made->ownSwitch != nullptr) own.ownSwitch = made->ownSwitch->address();
  }
  if (!why.empty()) return failed(ncclSystemError, "listen", why);
  std::memcpy(handle, &own, sizeof(own));
  ++made->context->listeners;
  *listener = listeners.add(std::move(made));
  return ncclSuccess;
}

ncclResult_t connect(void* handles[], int nodes, int node, void* listener, void** connection) {
  *connection = nullptr;
  const auto own = listeners.find(listener);
  if (own == nullptr) return notThere("connect", "listener");
  if (nodes < 1 || node < 0 || node >= nodes) {
    return misused("connect", "there is no node " + std::to_string(node) + " of " + std::to_string(nodes));
  }
  std::vector<Handle> all(static_cast<std::size_t>(nodes));
  for (std::size_t i = 0; i < all.size(); ++i) std::memcpy(&all[i], handles[i], sizeof(Handle));
  std::shared_ptr<Connection> opened;
  const ncclResult_t code = Connection::open(all, node, own, opened);
  if (opened != nullptr) *connection = connections.add(std::move(opened));
  return code;
}

ncclResult_t closeListen(void* listener) {
  const auto closed = listeners.remove(listener);
  if (closed == nullptr) return notThere("closeListen", "listener");
  closed->closed = true;
  --closed->context->listeners;
  return ncclSuccess;
}

ncclResult_t closeColl(void* connection) {
  const auto closed = connections.remove(connection);
  if (closed == nullptr) return notThere("closeColl", "connection");
  Settings settings;
  if (closed->registrations() == 0) return mayCall("closeColl", "refuse-close", settings);
  return misused("closeColl", std::to_string(closed->registrations()) + " registrations were not given back");
}

ncclResult_t reduceSupport(ncclDataType_t type, ncclRedOp_t op, int* supported) {
  Settings settings;
  if (const ncclResult_t code = mayCall("reduceSupport", "refuse-support", settings); code != ncclSuccess) return code;
  *supported = bytesOfType(type) > 0 && reduces(op) && !settings.faults.forbids(type, op) ? 1 : 0;
  return ncclSuccess;
}

ncclResult_t registerMemory(void* connection, void* data, std::size_t bytes, int type, void** handle) {
  const auto its = connections.find(connection);
  return its != nullptr ? its->registerMemory(data, bytes, type, handle) : notThere("regMr", "connection");
}

ncclResult_t deregisterMemory(void* connection, void* handle) {
  const auto its = connections.find(connection);
  return its != nullptr ? its->deregisterMemory(handle) : notThere("deregMr", "connection");
}

ncclResult_t allReduce(void* connection, void* send, void* recv, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                       void* sendHandle, void* recvHandle, void** request) {
  const auto its = connections.find(connection);
  if (its == nullptr) return notThere("iallreduce", "connection");
  const std::size_t bytes = count * bytesOfType(type);
  const Operation operation{.collective = Collective::AllReduce, .type = type, .op = op, .windowBytes = bytes};
  return its->post("iallreduce", operation, {send, bytes, sendHandle}, {recv, bytes, recvHandle}, request);
}

ncclResult_t allGather(void* connection, void* send, const Window& window, void* sendHandle, void** request) {
  const auto its = connections.find(connection);
  if (its == nullptr) return notThere("iallgather", "connection");
  if (const char* const why = objection(window); why != nullptr) return misused("iallgather", why);
  const Operation operation = operationOf(Collective::AllGather, window);
  return its->post("iallgather", operation, {send, its->ownBytes(operation), sendHandle},
                   {window.data, window.bytes, window.handle}, request);
}

ncclResult_t reduceScatter(void* connection, const Window& window, void* recv, ncclDataType_t type, ncclRedOp_t op,
                           void* recvHandle, void** request) {
  const auto its = connections.find(connection);
  if (its == nullptr) return notThere("ireducescatter", "connection");
  if (const char* const why = objection(window); why != nullptr) return misused("ireducescatter", why);
  Operation operation = operationOf(Collective::ReduceScatter, window);
  operation.type = type;
  operation.op = op;
  return its->post("ireducescatter", operation, {window.data, window.bytes, window.handle},
                   {recv, its->ownBytes(operation), recvHandle}, request);
}

ncclResult_t flush(void* connection, void* data, int bytes, void* handle, void** request) {
  const auto its = connections.find(connection);
  if (its == nullptr) return notThere("iflush", "connection");
  if (bytes < 0) return misused("iflush", "there are " + std::to_string(bytes) + " bytes");
  return its->flush({data, static_cast<std::size_t>(bytes), handle}, request);
}

ncclResult_t test(void* request, int* done, int* bytes) {
  auto* const its = static_cast<Request*>(request);
  const auto owner = connections.search([&](const Connection& connection) { return connection.owns(its); });
  return owner != nullptr ? owner->test(*its, done, bytes) : notThere("test", "request of a connection");
}

}  // namespace switch_collnet::coll
