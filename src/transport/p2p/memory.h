// The memory of one end of a connection, which the other end may use as well.
#pragma once

#include <cstddef>
#include <memory>

#include "transport/p2p/slab.h"

namespace tutti::p2p {

/// A part of a slab, which lives until its last user within this process lets go, or its owner says that it is over.
/// Kernels of a peer in the same process write straight into it: after a failure they may still do so when its owner is
/// gone. Any thread.
class SharedMemory {
 public:
  /// The part of `slab` from `offset` on.
  static std::shared_ptr<SharedMemory> create(std::shared_ptr<Slab> slab, std::size_t offset);
  SharedMemory(const SharedMemory&) = delete;
  ~SharedMemory();

  const gpu::Device& device() const { return slab_->device(); }
  CUdeviceptr address() const { return address_; }
  /// The same as a pointer, for views handed to kernels. The host must not dereference it.
  std::byte* data() const { return reinterpret_cast<std::byte*>(address_); }
  /// Of the slab, and where in it this part begins.
  const SlabName& slab() const { return slab_->name(); }
  std::size_t offset() const { return address_ - slab_->address(); }

  /// Lets go of the memory now. For the owner, when nobody reads or writes it any more.
  void free();

  /// The memory that begins at `address`, if this process has it.
  static std::shared_ptr<SharedMemory> at(CUdeviceptr address);

 private:
  SharedMemory(std::shared_ptr<Slab> slab, std::size_t offset)
      : slab_(std::move(slab)), address_(slab_->address() + offset) {}
  std::shared_ptr<Slab> slab_;
  CUdeviceptr address_;
};

}  // namespace tutti::p2p
