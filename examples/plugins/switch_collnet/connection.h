// A node's connection to the switch: what a collComm is. It checks what it is asked, sends it, and takes the results.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "own_switch.h"
#include "settings.h"

namespace switch_collnet {

/// What a communicator has open; everything must be given back before its finalize.
struct Context {
  std::atomic<int> listeners{0};
  std::atomic<int> connections{0};
  std::atomic<int> registrations{0};
};

/// What one node's listen() tells all of them. It is carried in NCCL_NET_HANDLE_MAXSIZE bytes.
struct Handle {
  std::uint64_t random[2];  ///< nobody else knows it, so nobody else can join
  Address ownSwitch;        ///< of the node's process; not known where all use SWITCH_COLLNET_ADDRESS
};
static_assert(sizeof(Handle) <= NCCL_NET_HANDLE_MAXSIZE);

struct Listener {
  std::shared_ptr<Context> owner;  ///< null: of a version without contexts
  Context* context = nullptr;      ///< where it counts
  int device = 0;
  Settings settings;
  std::shared_ptr<OwnSwitch> ownSwitch;  ///< null: all use SWITCH_COLLNET_ADDRESS
  std::atomic<bool> closed{false};       ///< a connect() that waits gives up
};

/// Memory that takes part in an operation, and the registration that is said to cover it.
struct Memory {
  void* data = nullptr;
  std::size_t bytes = 0;
  void* registration = nullptr;
};

class Connection;

/// An operation, or a flush, that is under way. It belongs to its connection.
struct Request {
  Connection* connection = nullptr;
  bool busy = false;
  bool done = false;
  Operation operation;
  char* to = nullptr;  ///< where the result goes
  std::uint64_t bytes = 0;
  Clock::time_point posted;
};

/// Threads: post(), flush() and test() by one at a time; registrations and questions by any.
class Connection {
 public:
  static constexpr std::size_t kRequests = 16;

  /// Joins the group and waits for the others, until SWITCH_COLLNET_CONNECT_MS have passed or the listener is closed.
  /// Null: the collNet is not available (a fault).
  static ncclResult_t open(const std::vector<Handle>& handles, int node, const std::shared_ptr<Listener>& listener,
                           std::shared_ptr<Connection>& opened);
  Connection(const Listener& listener, int nodes, int node);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  ncclResult_t registerMemory(void* data, std::size_t bytes, int type, void** registration);
  ncclResult_t deregisterMemory(void* registration);

  /// Of the operation's other members than `sequence`. *request null: all are under way, or a fault.
  ncclResult_t post(const char* call, Operation operation, const Memory& send, const Memory& recv, void** request);
  ncclResult_t flush(const Memory& received, void** request);
  ncclResult_t test(Request& request, int* done, int* bytes);
  bool owns(const Request* request) const { return request >= requests_ && request < requests_ + kRequests; }

  /// How many were not given back.
  std::size_t registrations();
  std::uint64_t ownBytes(const Operation& operation) const { return ownPart(operation, number()).bytes; }

 private:
  class Turn;

  std::uint64_t number() const { return static_cast<std::uint64_t>(node_); }
  std::string place() const;
  ncclResult_t join(const std::vector<Handle>& handles, const std::atomic<bool>& closed);
  ncclResult_t refused(const char* call);
  std::string objection(const Operation& operation) const;
  std::string objection(const char* what, const Memory& memory);
  Request* freeRequest();
  void progress();
  char* placeOf(const Frame& frame);
  void take(const Frame& frame);
  void writeStatistics() const;

  const std::shared_ptr<Context> owner_;
  Context* const context_;
  const int device_;
  const Settings settings_;
  const int nodes_;
  const int node_;
  const std::shared_ptr<OwnSwitch> ownSwitch_;
  Address switchAt_;
  Stream stream_;
  Bytes words_;  // of a Failed frame
  Request requests_[kRequests];
  std::uint64_t sequence_ = 0;
  std::uint64_t refusals_ = 0;  // for the fault "null-request"
  std::atomic<bool> busy_{false};

  std::mutex mutex_;                       // of the registrations
  std::map<void*, Memory> registrations_;  // by what registerMemory() gave
  std::uint64_t registered_ = 0;           // ever
  std::uint64_t counts_[3] = {0, 0, 0};    // of collectives
  std::uint64_t flushes_ = 0, bytesOut_ = 0, bytesIn_ = 0;
};

/// A call that the interface does not allow: says so, and ends the process (SWITCH_COLLNET_CHECKS=abort), or is what to
/// return.
ncclResult_t misused(const char* call, const std::string& why,
                     std::source_location at = std::source_location::current());

}  // namespace switch_collnet
