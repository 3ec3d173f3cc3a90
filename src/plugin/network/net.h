// A network as the rest of the library sees it, whether built in or loaded from a plugin of any version.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tutti::plugin {

/// What a receiver's listen() says to the sender's connect(): opaque, carried verbatim (NCCL_NET_HANDLE_MAXSIZE).
using NetHandle = std::array<std::byte, 128>;

/// Kinds of memory: bits of NetProperties::ptrSupport, and the `type` of a registration.
enum class PtrKind : std::uint8_t { Host = 1, Cuda = 2, DmaBuf = 4 };

/// What a network says of one of its devices, as the newest interface has it; older plugins' answers are upgraded
/// (plugin/network/net_upgrade.h).
struct NetProperties {
  std::string name;     ///< key of the NIC
  std::string pciPath;  ///< in sysfs; empty: virtual or unknown
  std::uint64_t guid = 0;
  int ptrSupport = 1;  ///< PtrKind bits
  bool regIsGlobal = false;
  bool forceFlush = false;  ///< flush after every receive into GPU memory
  int speedMbps = 10000;
  int port = 0;
  float latencyUs = 0;
  int maxComms = 0;
  int maxRecvs = 1;    ///< most receives of one irecv()
  int deviceType = 0;  ///< ncclNetDeviceType; 0: the host drives it
  int deviceVersion = 0;
  std::vector<int> physical;  ///< the devices it is made of: itself, or the children of a fused one
  std::size_t maxP2pBytes = 0;
  std::size_t maxCollBytes = 0;
  int maxMultiRequestSize = 1;
  int railId = -1;
  int planeId = -1;
};

/// One message's place on either side. The memory lies within what `registration` covers.
struct NetBuffer {
  void* data = nullptr;
  std::size_t bytes = 0;  ///< a receive: how much fits
  int tag = 0;            ///< the sender's rank; the channel, where several share the connection
  void* registration = nullptr;
  void* events = nullptr;  ///< a NetEventParent (plugin/profiler.h); null: nobody wants to hear of the request
};

/// How fusing devices ended. Born without a log line: whether a refusal is an error is for the caller to say.
struct NetFusion {
  int device = -1;  ///< the fused one's number; -1: none
  std::string why;  ///< there is none
};

/// The devices of a network, or of a collNet, for one communicator. Threads and errors as with Net.
class NetDevices {
 public:
  virtual ~NetDevices() = default;

  virtual std::string_view name() const = 0;
  /// What lines of the log call it: "NET" or "COLLNET".
  virtual std::string_view kind() const = 0;
  virtual Result<int> devices() = 0;
  virtual Result<NetProperties> properties(int device) = 0;

  /// Makes one of several devices. What is made stays until the network's library is unloaded.
  virtual bool fuses() const = 0;
  virtual int maxFused() const { return 4; }
  virtual NetFusion makeVirtual(std::span<const int> devices) = 0;
};

/// The use of one network by one communicator. Its end gives the context back: all connections must be closed by then.
/// Ends of connections, registrations and requests are the network's own
/// pointers. No call waits for a peer.
///
/// Threads: calls that set up or take down may come from any thread; isend, irecv, iflush and test of one connection
/// come from one thread at a time, while registrations of the same connection may go on beside them. Errors: what the
/// network returned, its own words before ours; the message names the network, its device and the call.
class Net : public NetDevices {
 public:
  std::string_view kind() const final { return "NET"; }

  /// Fills `handle`, which was zero.
  virtual Result<void*> listen(int device, NetHandle& handle) = 0;
  /// Null: not yet, call again with the same handle object, in which the network may keep its state.
  virtual Result<void*> connect(int device, NetHandle& handle) = 0;
  /// Gives up a connect() that still says "not yet". Networks that have no call for it keep what they have begun.
  virtual void abandonConnect(NetHandle& handle) { static_cast<void>(handle); }
  /// Null: not yet.
  virtual Result<void*> accept(void* listener) = 0;
  virtual Status closeListen(void* listener) = 0;
  /// Whether a receiving end may be closed with receives posted, as if nothing were. Otherwise, where an end comes in
  /// peace, its peer answers them before.
  virtual bool closesPosted() const { return true; }
  virtual Status closeSend(void* connection) = 0;
  virtual Status closeRecv(void* connection) = 0;

  /// The result may be null and still valid. `kind`: Host or Cuda.
  virtual Result<void*> registerMemory(void* connection, void* data, std::size_t bytes, PtrKind kind) = 0;
  virtual bool takesDmaBuf() const = 0;
  /// The descriptor is the caller's, who closes it afterwards.
  virtual Result<void*> registerDmaBuf(void* connection, void* data, std::size_t bytes, std::uint64_t offset,
                                       int fd) = 0;
  virtual Status deregisterMemory(void* connection, void* registration) = 0;

  /// Null: cannot be posted now, call again with the same arguments.
  virtual Result<void*> isend(void* connection, const NetBuffer& message) = 0;
  /// One request for 1 to maxRecvs messages. Null: cannot be posted now.
  virtual Result<void*> irecv(void* connection, std::span<const NetBuffer> messages) = 0;
  /// Makes what was received into GPU memory visible to the GPU. Null: there is nothing to wait for.
  virtual Result<void*> iflush(void* connection, std::span<const NetBuffer> messages) = 0;
  /// Whether the request is done; it must not be used again then. `sizes`: room for the bytes received by each message
  /// of a receive, or empty.
  virtual Result<bool> test(void* request, std::span<int> sizes) = 0;
  /// Whether it tells profilers of what it does for a message (NetBuffer::events).
  virtual bool tellsEvents() const { return false; }
  /// Whether the peer's host has all that was sent on this sending end, or has no room for it: sends may be done
  /// before. To be asked from time to time, by the thread that calls test(). Errors: it cannot be reached any more.
  /// Networks that do not know say true.
  virtual Result<bool> delivered(void* connection) {
    static_cast<void>(connection);
    return true;
  }
};

/// What a network is told when a communicator begins to use it.
struct NetOpening {
  std::uint64_t commId = 0;            ///< equal on all ranks
  int trafficClass = -1;               ///< -1: none
  std::array<std::byte, 32> secret{};  ///< of the communicator, for built-in networks to know their peers by
  bool gpuMemoryIsHost = false;        ///< GPU memory is memory of this process, as a software GPU's may be
  std::string who = "a rank";          ///< opens it, for messages here and at its peers
};

/// A built-in network, or a plugin's that was loaded.
class NetSource {
 public:
  virtual ~NetSource() = default;
  virtual std::string_view name() const = 0;
  virtual Result<std::unique_ptr<Net>> open(const NetOpening& opening) = 0;
};

}  // namespace tutti::plugin
