#include "transport/p2p/peer.h"

#include <string>

#include "base/log.h"
#include "transport/common/ranks.h"

namespace tutti::p2p {

namespace {

/// Lets kernels of `device` reach memory of another device of this process. Once per pair; again is no error.
Status enableAccess(const gpu::Device& device, const topo::PeerInfo& self, const topo::PeerInfo& peer) {
  if (transport::sameDevice(self, peer)) return {};
  const gpu::Driver& driver = device.driver();
  CUdevice other = 0;
  CUcontext context = nullptr;
  TRY(gpu::checkCu(driver, driver.cuDeviceGet(&other, peer.cudaDevice), "cuDeviceGet", peer.cudaDevice));
  TRY(gpu::checkCu(driver, driver.cuDevicePrimaryCtxRetain(&context, other), "cuDevicePrimaryCtxRetain",
                   peer.cudaDevice));
  CUresult result = CUDA_ERROR_INVALID_CONTEXT;
  {
    const auto guard = device.enter();
    if (guard.ok()) result = driver.cuCtxEnablePeerAccess(context, 0);
  }
  // The peer rank keeps its own reference for as long as its communicator lives.
  TRY(gpu::checkCu(driver, driver.cuDevicePrimaryCtxRelease(other), "cuDevicePrimaryCtxRelease", peer.cudaDevice));
  if (result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) return {};
  return gpu::checkCu(
      driver, result,
      gpu::CuCall{"cuCtxEnablePeerAccess", device.ordinal(), 0, "connecting " + transport::pairText(self, peer)});
}

}  // namespace

Result<PeerMemory> PeerMemory::open(const gpu::Device& device, const transport::LinkSpec& link,
                                    const WireHandle& handle, Slabs& slabs) {
  PeerMemory memory;
  if (!transport::sameProcess(link.self, link.peer)) {
    memory.import_ = slabs.import(link, handle.slab);
    memory.offset_ = handle.offset;
    ASSIGN(const bool mapped, memory.advance());
    static_cast<void>(mapped);  // else its owner has to hand it out first
    return memory;
  }
  TRY(enableAccess(device, link.self, link.peer));
  memory.address_ = static_cast<CUdeviceptr>(handle.address);
  memory.shared_ = SharedMemory::at(memory.address_);
  if (memory.shared_ != nullptr) return memory;
  return fail(ncclRemoteError,
              "The memory of {} is gone, which {} connects to: that rank has given the connection up. Look "
              "for its own first error",
              transport::rankText(link.peer), transport::rankText(link.self));
}

Result<bool> PeerMemory::advance() {
  if (address_ != 0) return true;
  ASSIGN(const bool mapped, import_->advance());
  if (mapped) address_ = import_->address() + offset_;
  return mapped;
}

}  // namespace tutti::p2p
