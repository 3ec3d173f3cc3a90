// One connection of a network, from listening or connecting to closing, with what is registered on it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "gpu/memory.h"
#include "plugin/network/net.h"
#include "transport/net/lane/memory_registrar.h"
#include "transport/net/lane/path.h"
#include "transport/net/lane/slot_place.h"

namespace tutti::transport {
class RegisteredMemory;
}

namespace tutti::net {

class UserRegistrations;

/// Owns whatever the network has given so far, and gives it back in the order in which networks expect it, at whatever
/// point it ends. Used by one thread at a time. `net` must outlive it.
class NetConnection final : public SpareMemory, private MemoryRegistrar {
 public:
  /// `path`: for messages; of the first connection, where several share it.
  NetConnection(plugin::Net& net, NetPath path, int device);
  NetConnection(const NetConnection&) = delete;
  NetConnection& operator=(const NetConnection&) = delete;
  ~NetConnection();

  /// Receiver: handle() is what the sender needs.
  Status listen();
  const plugin::NetHandle& handle() const { return handle_; }
  /// Sender: what the receiver's handle() was.
  void aim(const plugin::NetHandle& handle) { handle_ = handle; }

  /// Connects, or accepts, without waiting: whether that has come to its end.
  Result<bool> poll();
  void* connection() const { return connection_; }
  /// The result may be null and still valid; it lasts as long as this. The memory must outlive it: keep() sees to that.
  Result<void*> registerMemory(void* data, std::size_t bytes, plugin::PtrKind kind);
  /// The same for memory of `device`, in the ways of `place`. Errors do not name the connection.
  Result<void*> registerOnDevice(const gpu::DeviceBuffer& memory, const gpu::Device& device, const SlotPlace& place);

  /// Sender, when it is connected: what `memory` has is sent from where it lies; the network is given it as it is given
  /// slots in device memory or, where it does not take these, as host memory, which a software GPU's is as well. The
  /// same for every caller; lasts as long as this. `device` must outlive it.
  UserRegistrations& sendRegistered(const std::shared_ptr<transport::RegisteredMemory>& memory,
                                    const gpu::Device& device, const SlotPlace& slots);

  Result<Kept> allocateKept(std::size_t bytes) override;

  /// What messages call the connection from now on: "NET/Socket/0".
  void describe(const std::string& description) { path_.description = description; }
  /// Keeps what is registered until the connection is closed: requests of an end that is gone may be under way.
  void keep(std::shared_ptr<const void> memory) { kept_.push_back(std::move(memory)); }

 private:
  Status closeListener();
  Result<void*> remembered(Result<void*> registration);
  Result<void*> registerUser(void* data, std::size_t bytes) override;
  void deregister(void* registration) override;
  std::string text() const override { return path_.text(); }

  std::vector<std::shared_ptr<const void>> kept_;
  plugin::Net& net_;
  NetPath path_;
  int device_;
  plugin::NetHandle handle_{};
  void* listener_ = nullptr;
  void* connection_ = nullptr;
  bool connecting_ = false;  ///< the network may keep a state for `handle_`
  std::vector<void*> registrations_;
  const gpu::Device* gpu_ = nullptr;  ///< whose memory `user_` is
  SlotPlace userPlace_;
  std::unique_ptr<UserRegistrations> user_;
};

/// Polls each of an end's connections, of which some may be absent: whether all have come to their end.
Result<bool> pollAll(std::span<const std::shared_ptr<NetConnection>> joins);

}  // namespace tutti::net
