// A network that reduces and gathers by itself (in its switches), as the rest of the library sees it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/dl.h"
#include "plugin/network/net.h"
#include "plugin/network/net_plugin.h"

namespace tutti::plugin {

/// Memory that takes part in an operation of a CollNet, within what `registration` covers.
struct CollNetBuffer {
  void* data = nullptr;
  std::size_t bytes = 0;
  void* registration = nullptr;
};

/// How elements are combined. Averages and scaled sums are sums to a network.
struct CollNetReduction {
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t op = ncclSum;
};

/// A part of the concatenation of all ranks' `bytesPerRank` bytes.
struct CollNetWindow {
  std::size_t bytesPerRank = 0;
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

/// The use of a network's own collectives by one communicator. All ranks of a connection issue the same operations in
/// the same order. Ends, registrations and requests are the network's own pointers; only connect() waits for peers.
/// Its end, threads and errors as with Net.
class CollNet : public NetDevices {
 public:
  std::string_view kind() const final { return "COLLNET"; }

  /// Fills `handle`, which was zero.
  virtual Result<void*> listen(int device, NetHandle& handle) = 0;
  /// Joins all listeners, whose handles are `handles`; `rank` is the number of this one's. Waits for the others. Null:
  /// the network is not available.
  virtual Result<void*> connect(std::span<NetHandle> handles, int rank, void* listener) = 0;
  virtual Status closeListen(void* listener) = 0;
  virtual Status close(void* connection) = 0;

  virtual Result<bool> reduces(CollNetReduction reduction) = 0;
  virtual Result<void*> registerMemory(void* connection, void* data, std::size_t bytes, PtrKind kind) = 0;
  virtual bool takesDmaBuf() const = 0;
  /// The descriptor is the caller's, who closes it afterwards.
  virtual Result<void*> registerDmaBuf(void* connection, void* data, std::size_t bytes, std::uint64_t offset,
                                       int fd) = 0;
  virtual Status deregisterMemory(void* connection, void* registration) = 0;

  /// Of send.bytes bytes. Null: cannot be posted now, call again with the same arguments; likewise below.
  virtual Result<void*> iallreduce(void* connection, const CollNetBuffer& send, const CollNetBuffer& recv,
                                   CollNetReduction reduction) = 0;
  virtual bool gathers() const = 0;
  /// `recv` gets the window; `send` is the caller's part of it.
  virtual Result<void*> iallgather(void* connection, const CollNetBuffer& send, const CollNetBuffer& recv,
                                   const CollNetWindow& window) = 0;
  virtual bool scatters() const = 0;
  /// `send` is the window; `recv` gets what of it belongs to the caller.
  virtual Result<void*> ireducescatter(void* connection, const CollNetBuffer& send, const CollNetBuffer& recv,
                                       const CollNetWindow& window, CollNetReduction reduction) = 0;
  /// Makes what was received into GPU memory visible to the GPU. Null: there is nothing to wait for.
  virtual Result<void*> iflush(void* connection, const CollNetBuffer& received) = 0;
  /// Whether the request is done; it must not be used again then. `bytes`, if given: how many came.
  virtual Result<bool> test(void* request, int* bytes) = 0;
};

/// The collNet of a library; otherwise like LoadedNet.
class LoadedCollNet {
 public:
  virtual ~LoadedCollNet() = default;
  virtual std::string_view name() const = 0;
  virtual int version() const = 0;
  virtual NetAttempt<CollNet> attempt(const NetOpening& opening) = 0;
};

/// The newest collNet interface of a library, whatever its net interface is; null: it has none.
std::unique_ptr<LoadedCollNet> findCollNet(const DlLibrary& library, const std::string& path);

/// Bytes of one element; 0: no such type.
std::size_t collNetTypeBytes(ncclDataType_t type);

}  // namespace tutti::plugin
