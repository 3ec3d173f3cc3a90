// The allocation behind one end of a connection, which the other end may use as well.
#pragma once

#include <memory>
#include <optional>

#include "base/status.h"
#include "gpu/memory.h"

namespace tutti::p2p {

/// Device memory that lives until its last user within this process lets go, or its owner says that it is over. Kernels
/// of a peer in the same process write straight into it: after a failure they may still do so when its owner is gone.
/// Any thread.
class SharedMemory {
 public:
  /// `deviceOwner`, which may be null, keeps the device for as long as the memory.
  static Result<std::shared_ptr<SharedMemory>> create(const gpu::Device& device, std::size_t bytes,
                                                      const gpu::MemoryUse& use,
                                                      std::shared_ptr<const void> deviceOwner);
  SharedMemory(const SharedMemory&) = delete;
  ~SharedMemory();

  const gpu::DeviceBuffer& buffer() const { return *buffer_; }

  /// Frees the memory now. For the owner, when nobody reads or writes it any more.
  void free();

  /// The memory that begins at `address`, if this process has it.
  static std::shared_ptr<SharedMemory> at(CUdeviceptr address);

 private:
  SharedMemory(gpu::DeviceBuffer buffer, std::shared_ptr<const void> deviceOwner)
      : deviceOwner_(std::move(deviceOwner)), buffer_(std::move(buffer)), address_(buffer_->address()) {}
  std::shared_ptr<const void> deviceOwner_;  ///< outlives the buffer
  std::optional<gpu::DeviceBuffer> buffer_;
  CUdeviceptr address_;
};

}  // namespace tutti::p2p
