#include "transport/p2p/slab.h"

#include <utility>

#include "base/log.h"
#include "gpu/memory_ledger.h"

namespace tutti::p2p {

Result<std::shared_ptr<Slab>> Slab::create(const gpu::Device& device, std::size_t bytes, const gpu::MemoryUse& use,
                                           Sharing sharing, std::shared_ptr<transport::FdServer> server,
                                           std::shared_ptr<const void> deviceOwner) {
  const std::shared_ptr<Slab> slab(new Slab(device, std::move(deviceOwner)));
  slab->name_.sharing = sharing;
  TRY(slab->allocate(bytes, use));
  TRY(slab->share(std::move(server)));
  return slab;
}

Status Slab::allocate(std::size_t bytes, const gpu::MemoryUse& use) {
  if (name_.sharing != Sharing::Descriptor) {
    ASSIGN(gpu::DeviceBuffer buffer, gpu::DeviceBuffer::create(*device_, bytes, use));
    buffer_.emplace(std::move(buffer));
    name_.bytes = bytes;
    return {};
  }
  ASSIGN(gpu::MappedMemory memory, gpu::MappedMemory::create(*device_, bytes, use, gpu::MappedFor::OwnDevice));
  mapped_.emplace(std::move(memory));
  name_.bytes = mapped_->size();
  return gpu::zeroDevice(*device_, mapped_->address(), mapped_->size());
}

Status Slab::share(std::shared_ptr<transport::FdServer> server) {
  switch (name_.sharing) {
    case Sharing::Address:
      return {};
    case Sharing::Ipc: {
      ASSIGN(name_.ipc, gpu::IpcMemory::exportHandle(*buffer_));
      ASSIGN(name_.ticket.item, transport::randomToken());
      return {};
    }
    case Sharing::Descriptor: {
      ASSIGN(Fd descriptor, mapped_->descriptor());
      ASSIGN(name_.ticket, server->offer(std::move(descriptor)));
      server_ = std::move(server);
      return {};
    }
  }
  return {};
}

Slab::~Slab() {
  if (server_ != nullptr) server_->withdraw(name_.ticket);
}

SlabImport::SlabImport(const gpu::Device& device, const SlabName& name, std::string owner, milliseconds patience)
    : device_(&device), name_(name), owner_(std::move(owner)), fetch_(name.ticket, Deadline::in(patience)) {}

CUdeviceptr SlabImport::address() {
  const std::lock_guard lock(mutex_);
  if (ipc_) return ipc_->address();
  return mapped_ ? mapped_->address() : 0;
}

Status SlabImport::map() {
  ASSIGN(gpu::MappedMemory memory, gpu::MappedMemory::adopt(*device_, descriptor_, name_.bytes, owner_));
  mapped_.emplace(std::move(memory));
  descriptor_.reset();
  return {};
}

Result<bool> SlabImport::advance() {
  const std::lock_guard lock(mutex_);
  if (ipc_ || mapped_) return true;
  if (name_.sharing == Sharing::Ipc) {
    ASSIGN(gpu::IpcMemory memory, gpu::IpcMemory::open(*device_, name_.ipc, owner_));
    ipc_.emplace(std::move(memory));
    return true;
  }
  switch (fetch_.advance()) {
    case transport::FetchState::Pending:
      return false;
    case transport::FetchState::Done:
      if (!descriptor_.valid()) descriptor_ = fetch_.take();
      TRY(map());
      return true;
    case transport::FetchState::Failed:
      break;
  }
  return fail(ncclRemoteError,
              "P2P: the memory of {} could not be fetched: {}. NCCL_CUMEM_ENABLE=0 shares it by CUDA's IPC handles "
              "instead",
              owner_, fetch_.why());
}

}  // namespace tutti::p2p
