// One connection of a network, from listening or connecting to closing, with what is registered on it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "gpu/dma_buf.h"
#include "plugin/net.h"
#include "transport/net/net_path.h"

namespace tutti::net {

/// Owns whatever the network has given so far, and gives it back in the order in which networks expect it, at whatever
/// point it ends. Used by one thread at a time. `net` and `path` must outlive it.
class NetJoin {
 public:
  NetJoin(Net& net, const NetPath& path, int device) : net_(net), path_(path), device_(device) {}
  NetJoin(const NetJoin&) = delete;
  NetJoin& operator=(const NetJoin&) = delete;
  ~NetJoin();

  /// Receiver: handle() is what the sender needs.
  Status listen();
  const NetHandle& handle() const { return handle_; }
  /// Sender: what the receiver's handle() was.
  void aim(const NetHandle& handle) { handle_ = handle; }

  /// Connects, or accepts, without waiting: whether that has come to its end.
  Result<bool> poll();
  void* connection() const { return connection_; }
  /// The result may be null and still valid; it lasts as long as this. The memory must outlive it.
  Result<void*> registerMemory(void* data, std::size_t bytes, PtrKind kind);
  /// The same for GPU memory that `buffer`, which stays the caller's, was made of.
  Result<void*> registerDmaBuf(void* data, std::size_t bytes, const DmaBuf& buffer);

 private:
  Status closeListener();
  Result<void*> kept(Result<void*> registration);

  Net& net_;
  const NetPath& path_;
  int device_;
  NetHandle handle_{};
  void* listener_ = nullptr;
  void* connection_ = nullptr;
  bool connecting_ = false;  ///< the network may keep a state for `handle_`
  std::vector<void*> registrations_;
};

/// Polls each of an end's connections, of which some may be absent: whether all have come to their end.
Result<bool> pollAll(std::span<const std::unique_ptr<NetJoin>> joins);

}  // namespace tutti::net
