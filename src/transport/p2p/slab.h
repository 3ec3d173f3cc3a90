// The allocation behind links that are opened to a peer together; another process maps it as one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "gpu/ipc.h"
#include "gpu/mapped_memory.h"
#include "gpu/memory.h"
#include "transport/common/fd_fetch.h"
#include "transport/common/fd_server.h"

namespace tutti::p2p {

/// How the peer gets at a slab.
enum class Sharing : std::uint32_t {
  Address,     ///< in the same process
  Ipc,         ///< by CUDA's handles between processes
  Descriptor,  ///< by a file descriptor of its physical memory ("cuMem")
};

/// What a peer needs to get at a slab. Trivially copyable; travels in handles.
struct SlabName {
  Sharing sharing = Sharing::Address;
  std::uint64_t bytes = 0;
  transport::Ticket ticket{};  ///< Descriptor: for it; else only a name that no other slab has
  CUipcMemHandle ipc{};        ///< Ipc
};

/// Zeroed device memory, freed with the last part of it. Any thread.
class Slab {
 public:
  /// `server` hands the descriptor out; null unless `sharing` is Descriptor. `deviceOwner`, which may be null, keeps
  /// the device for as long as the memory.
  static Result<std::shared_ptr<Slab>> create(const gpu::Device& device, std::size_t bytes, const gpu::MemoryUse& use,
                                              Sharing sharing, std::shared_ptr<transport::FdServer> server,
                                              std::shared_ptr<const void> deviceOwner);
  Slab(const Slab&) = delete;
  ~Slab();

  const gpu::Device& device() const { return *device_; }
  CUdeviceptr address() const { return mapped_ ? mapped_->address() : buffer_->address(); }
  const SlabName& name() const { return name_; }

 private:
  explicit Slab(const gpu::Device& device, std::shared_ptr<const void> deviceOwner)
      : deviceOwner_(std::move(deviceOwner)), device_(&device) {}
  Status allocate(std::size_t bytes, const gpu::MemoryUse& use);
  Status share(std::shared_ptr<transport::FdServer> server);

  std::shared_ptr<const void> deviceOwner_;  ///< outlives the memory
  const gpu::Device* device_;
  std::optional<gpu::DeviceBuffer> buffer_;      ///< Address, Ipc
  std::optional<gpu::MappedMemory> mapped_;      ///< Descriptor
  std::shared_ptr<transport::FdServer> server_;  ///< while it may have the descriptor
  SlabName name_;
};

/// A slab of another process as this one maps it. Any thread.
class SlabImport {
 public:
  /// `owner` names whose it is in errors: "rank 3 (host node7)". `patience`: with an owner that does not hand it out.
  SlabImport(const gpu::Device& device, const SlabName& name, std::string owner, milliseconds patience);
  const transport::Token& token() const { return name_.ticket.item; }
  /// Whether it is mapped by now. Never waits. Errors: the driver's, or ncclRemoteError where the owner does not hand
  /// it out; the next call says the same.
  Result<bool> advance();
  /// 0 until it is mapped.
  CUdeviceptr address();

 private:
  Status map();

  std::mutex mutex_;
  const gpu::Device* device_;
  SlabName name_;
  std::string owner_;
  transport::FdFetch fetch_;
  Fd descriptor_;  ///< fetched
  std::optional<gpu::IpcMemory> ipc_;
  std::optional<gpu::MappedMemory> mapped_;
};

}  // namespace tutti::p2p
