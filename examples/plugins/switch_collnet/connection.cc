#include "connection.h"

#include <climits>
#include <cstdio>

namespace switch_collnet {

namespace {

/// Both halves from all handles in their order.
GroupKey keyOf(const std::vector<Handle>& handles) {
  GroupKey key{{0xcbf29ce484222325u, 0x84222325cbf29ce4u}};
  for (const Handle& handle : handles) {
    for (int i = 0; i < 2; ++i) {
      key.word[i] = (key.word[i] ^ handle.random[i]) * 0x100000001b3u;
      key.word[i] ^= key.word[i] >> 29;
    }
  }
  return key;
}

/// How often a call that waits looks at what else may end it.
constexpr Milliseconds kGlance(20);

}  // namespace

ncclResult_t misused(const char* call, const std::string& why, std::source_location at) {
  Settings settings;
  const std::string unusable = settings.read();
  failed(ncclInternalError, call, why, at);
  if (!unusable.empty() || !settings.abortOnMisuse) return ncclInternalError;
  std::fprintf(stderr, "switch_collnet: %s: %s (SWITCH_COLLNET_CHECKS=error makes an error of it)\n", call,
               why.c_str());
  std::abort();
}

/// A call that must not overlap another one of its connection.
class Connection::Turn {
 public:
  explicit Turn(Connection& connection) : busy_(connection.busy_) { granted_ = !busy_.exchange(true); }
  ~Turn() {
    if (granted_) busy_ = false;
  }
  bool granted() const { return granted_; }
  static ncclResult_t refuse(const char* call) {
    return misused(call, "another thread is in a call of the same connection: one at a time drives it");
  }

 private:
  std::atomic<bool>& busy_;
  bool granted_;
};

Connection::Connection(const Listener& listener, int nodes, int node)
    : owner_(listener.owner),
      context_(listener.context),
      device_(listener.device),
      settings_(listener.settings),
      nodes_(nodes),
      node_(node),
      ownSwitch_(listener.ownSwitch) {
  ++context_->connections;
}

/// With requests under way no goodbye is said: the others learn that this node has given up.
Connection::~Connection() {
  bool idle = stream_.alive();
  for (const Request& request : requests_) idle = idle && !request.busy;
  if (idle && stream_.fd().valid()) {
    stream_.send({.kind = Kind::Bye}, nullptr, 0);
    stream_.flush();  // it is short: the socket takes it
  }
  for (const auto& [key, memory] : registrations_) delete static_cast<char*>(key);
  context_->registrations -= static_cast<int>(registrations_.size());
  --context_->connections;
  if (!settings_.statisticsFile.empty() && sequence_ > 0) writeStatistics();
}

std::string Connection::place() const {
  return "node " + std::to_string(node_) + " of " + std::to_string(nodes_) + ", device " +
         devices().all[static_cast<std::size_t>(device_)].name + ", switch " + switchAt_.text();
}

ncclResult_t Connection::open(const std::vector<Handle>& handles, int node, const std::shared_ptr<Listener>& listener,
                              std::shared_ptr<Connection>& opened) {
  auto made = std::make_shared<Connection>(*listener, static_cast<int>(handles.size()), node);
  const Settings& settings = made->settings_;
  made->switchAt_ = settings.switchAt.known() ? settings.switchAt : handles[0].ownSwitch;
  if (settings.faults.has("refuse-connect", node)) {
    return failed(ncclSystemError, "connect", made->place() + ": told to refuse");
  }
  if (settings.faults.has("hang-connect", node)) {
    const auto end = Clock::now() + Milliseconds(settings.operationMs);
    while (!listener->closed && Clock::now() < end) ::poll(nullptr, 0, static_cast<int>(kGlance.count()));
    return failed(ncclSystemError, "connect", made->place() + ": told to wait until it is closed");
  }
  if (!made->switchAt_.known()) {
    return failed(ncclInvalidUsage, "connect",
                  made->place() + ": node 0 knows of no switch: SWITCH_COLLNET_ADDRESS is set there or here only");
  }
  if (node == 0 && made->ownSwitch_ != nullptr) made->ownSwitch_->serve(settings.faults);
  if (const ncclResult_t code = made->join(handles, listener->closed); code != ncclSuccess) return code;
  if (!settings.faults.has("no-collnet", node)) opened = std::move(made);
  return ncclSuccess;
}

/// The switch knows more than this node about who is missing: it is waited for a little longer than it waits itself.
ncclResult_t Connection::join(const std::vector<Handle>& handles, const std::atomic<bool>& closed) {
  Join wanted{.group = keyOf(handles),
              .nodes = static_cast<std::uint32_t>(nodes_),
              .node = static_cast<std::uint32_t>(node_),
              .joinMs = static_cast<std::uint32_t>(settings_.connectMs),
              .operationMs = static_cast<std::uint32_t>(settings_.operationMs)};
  std::snprintf(wanted.name, sizeof(wanted.name), "%s", ownName(device_).c_str());
  const auto end = Clock::now() + Milliseconds(settings_.connectMs) + Milliseconds(1000);
  stream_ = Stream(connectTo(switchAt_));
  if (!stream_.fd().valid()) stream_.fail(std::strerror(errno));
  int state = EINPROGRESS;
  bool joined = false;
  while (stream_.alive() && !joined && !closed && Clock::now() < end) {
    if (state == EINPROGRESS) {
      state = connectState(stream_.fd());
      if (state == EINPROGRESS) {
        waitFor(stream_.fd(), POLLOUT, kGlance);
        continue;
      }
      if (state != 0) {
        stream_.fail(std::strerror(state));
        break;
      }
      stream_.send({.kind = Kind::Join}, &wanted, sizeof(wanted));
      stream_.flush();  // it is short: the socket takes it
    }
    const auto frame = stream_.receive([&](const Frame& f) { return placeOf(f); });
    if (frame && frame->kind == Kind::Joined) {
      joined = true;
    } else if (frame) {
      take(*frame);
    } else if (stream_.alive()) {
      waitFor(stream_.fd(), POLLIN, kGlance);
    }
  }
  if (joined) return ncclSuccess;
  if (closed) stream_.fail("it was closed while it waited");
  stream_.fail(state == EINPROGRESS ? "it cannot be reached" : "it has not answered");
  return failed(
      ncclRemoteError, "connect",
      place() + ": " + stream_.error() + " (SWITCH_COLLNET_CONNECT_MS=" + std::to_string(settings_.connectMs) + ")");
}

ncclResult_t Connection::registerMemory(void* data, std::size_t bytes, int type, void** registration) {
  *registration = nullptr;
  if (data == nullptr || bytes == 0) return misused("regMr", place() + ": there is no memory");
  if (type != NCCL_PTR_HOST && (type != NCCL_PTR_CUDA || !settings_.gpuMemory)) {
    return misused("regMr", place() + ": memory of kind " + std::to_string(type) + " is not in ptrSupport");
  }
  const std::lock_guard lock(mutex_);
  const Fault* const refusal = settings_.faults.find("refuse-register", node_);
  if (refusal != nullptr && registered_ + 1 >= static_cast<std::uint64_t>(refusal->number())) {
    return failed(ncclSystemError, "regMr", place() + ": told to refuse");
  }
  ++registered_;
  ++context_->registrations;
  *registration = new char;  // its address is the handle: no other can have the same
  registrations_[*registration] = {data, bytes, *registration};
  return ncclSuccess;
}

ncclResult_t Connection::deregisterMemory(void* registration) {
  {
    const std::lock_guard lock(mutex_);
    if (registrations_.erase(registration) == 1) {
      delete static_cast<char*>(registration);
      --context_->registrations;
      return ncclSuccess;
    }
  }
  return misused("deregMr", place() + ": no memory has been registered under that handle, or not with this connection");
}

std::size_t Connection::registrations() {
  const std::lock_guard lock(mutex_);
  return registrations_.size();
}

ncclResult_t Connection::refused(const char* call) {
  return failed(ncclRemoteError, call, place() + ": " + stream_.error());
}

/// What is wrong with an operation by itself; empty: nothing.
std::string Connection::objection(const Operation& o) const {
  const std::uint64_t element = bytesOfType(o.type);
  if (o.windowBytes == 0) return "nothing is to be moved";
  if (o.windowBytes > settings_.maxCollBytes) {
    return "it is longer than maxCollBytes, which is " + std::to_string(settings_.maxCollBytes);
  }
  if (o.collective != Collective::AllGather) {
    if (element == 0 || !reduces(o.op)) return "no switch reduces that";
    if (settings_.faults.forbids(o.type, o.op)) return "reduceSupport has said no to this type and operation";
    if (o.windowBytes % element != 0 || o.windowOffset % element != 0 || o.bytesPerRank % element != 0) {
      return "an element is cut into two";
    }
  }
  if (o.collective == Collective::AllReduce) return "";
  const std::uint64_t all = static_cast<std::uint64_t>(nodes_) * o.bytesPerRank;
  return o.windowOffset > all || o.windowBytes > all - o.windowOffset
             ? "the window leaves the " + std::to_string(all) + " bytes that all nodes have"
             : "";
}

/// What is wrong with memory that an operation uses; empty: nothing.
std::string Connection::objection(const char* what, const Memory& memory) {
  if (memory.bytes == 0) return "";
  const std::lock_guard lock(mutex_);
  const auto found = registrations_.find(memory.registration);
  if (found == registrations_.end())
    return std::string("the ") + what + " memory is not registered with this connection";
  const char* const begin = static_cast<const char*>(memory.data);
  const char* const registered = static_cast<const char*>(found->second.data);
  const bool inside = begin >= registered && begin + memory.bytes <= registered + found->second.bytes;
  return inside ? "" : std::string("the ") + what + " memory is not inside what was registered under its handle";
}

Request* Connection::freeRequest() {
  for (Request& request : requests_) {
    if (!request.busy) return &request;
  }
  return nullptr;
}

ncclResult_t Connection::post(const char* call, Operation operation, const Memory& send, const Memory& recv,
                              void** request) {
  *request = nullptr;
  const Turn turn(*this);
  if (!turn.granted()) return Turn::refuse(call);
  operation.sequence = sequence_ + 1;
  std::string why = objection(operation);
  if (why.empty()) why = objection("sent", send);
  if (why.empty()) why = objection("received", recv);
  if (!why.empty()) return misused(call, place() + ": " + describe(operation) + ": " + why);
  if (settings_.faults.strikes("post-error", node_, operation.sequence)) stream_.fail("told to fail");
  if (!stream_.alive()) return refused(call);
  const Fault* const refusals = settings_.faults.find("null-request", node_);
  if (refusals != nullptr && refusals_ < static_cast<std::uint64_t>(refusals->number())) {
    ++refusals_;
    return ncclSuccess;
  }
  Request* const free = freeRequest();
  if (free == nullptr) return ncclSuccess;
  ++sequence_;
  ++counts_[static_cast<int>(operation.collective)];
  bytesOut_ += send.bytes;
  *free = {.connection = this,
           .busy = true,
           .operation = operation,
           .to = static_cast<char*>(recv.data),
           .bytes = recv.bytes,
           .posted = Clock::now()};
  stream_.send({.kind = Kind::Operation, .operation = operation}, send.data, send.bytes);
  progress();
  *request = free;
  return ncclSuccess;
}

/// Makes what was received visible to the GPU. Here nothing has to be done, as processors have written it; it is only
/// counted. Real hardware reads from the memory through the path that the data took.
ncclResult_t Connection::flush(const Memory& received, void** request) {
  *request = nullptr;
  const Turn turn(*this);
  if (!turn.granted()) return Turn::refuse("iflush");
  if (const std::string why = objection("flushed", received); !why.empty()) {
    return misused("iflush", place() + ": " + why);
  }
  ++flushes_;
  Request* const free = settings_.gpuMemory ? freeRequest() : nullptr;
  if (free == nullptr) return ncclSuccess;  // done
  *free = {.connection = this, .busy = true, .done = true, .bytes = received.bytes, .posted = Clock::now()};
  *request = free;
  return ncclSuccess;
}

ncclResult_t Connection::test(Request& request, int* done, int* bytes) {
  const Turn turn(*this);
  if (!turn.granted()) return Turn::refuse("test");
  *done = 0;
  if (!request.busy) return misused("test", place() + ": the request is not under way: it was done, or never posted");
  if (settings_.faults.strikes("test-error", node_, request.operation.sequence)) {
    stream_.fail("told to fail");
    return refused("test");
  }
  if (!request.done) progress();
  if (!request.done && Clock::now() > request.posted + Milliseconds(settings_.operationMs)) {
    stream_.fail(describe(request.operation) + " has had no answer for " + std::to_string(settings_.operationMs) +
                 " ms (SWITCH_COLLNET_OPERATION_MS)");
  }
  if (!request.done) return stream_.alive() ? ncclSuccess : refused("test");
  *done = 1;
  if (bytes != nullptr) *bytes = static_cast<int>(std::min<std::uint64_t>(request.bytes, INT_MAX));
  request.busy = false;
  return ncclSuccess;
}

/// Moves what can be moved now.
void Connection::progress() {
  stream_.flush();
  while (const auto frame = stream_.receive([&](const Frame& f) { return placeOf(f); })) take(*frame);
}

/// A result goes straight to where it belongs: results come in the order of the operations, but one may be lost.
char* Connection::placeOf(const Frame& frame) {
  if (frame.kind == Kind::Failed) {
    words_.resize(frame.payload);
    return words_.data();
  }
  for (Request& request : requests_) {
    const bool its = request.busy && !request.done && request.operation == frame.operation;
    if (frame.kind != Kind::Result || !its) continue;
    if (request.bytes == frame.payload) return request.to;
    stream_.fail("the switch has answered " + describe(frame.operation) + " with " + std::to_string(frame.payload) +
                 " bytes instead of " + std::to_string(request.bytes));
    return nullptr;
  }
  return nullptr;
}

void Connection::take(const Frame& frame) {
  if (frame.kind == Kind::Failed) return stream_.fail("the switch says: " + std::string(words_.begin(), words_.end()));
  for (Request& request : requests_) {
    if (frame.kind != Kind::Result || !request.busy || request.done || request.operation != frame.operation) continue;
    request.done = true;
    bytesIn_ += frame.payload;
    return;
  }
  stream_.fail("the switch has answered what nobody asked");
}

void Connection::writeStatistics() const {
  std::FILE* const file = std::fopen(settings_.statisticsFile.c_str(), "a");
  if (file == nullptr) return;
  const auto number = [](std::uint64_t n) { return std::to_string(n); };
  const std::string line = "node=" + std::to_string(node_) + " of=" + std::to_string(nodes_) +
                           " device=" + std::to_string(device_) + " allreduce=" + number(counts_[0]) +
                           " allgather=" + number(counts_[1]) + " reducescatter=" + number(counts_[2]) +
                           " bytes_out=" + number(bytesOut_) + " bytes_in=" + number(bytesIn_) +
                           " flushes=" + number(flushes_) + " registrations=" + number(registered_) + "\n";
  std::fputs(line.c_str(), file);  // in one write: other processes may use the same file
  std::fclose(file);
}

}  // namespace switch_collnet
