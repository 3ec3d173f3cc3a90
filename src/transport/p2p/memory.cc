#include "transport/p2p/memory.h"

#include "transport/common/process_directory.h"

namespace tutti::p2p {

using Directory = transport::ProcessDirectory<SharedMemory>;

Result<std::shared_ptr<SharedMemory>> SharedMemory::create(const gpu::Device& device, std::size_t bytes,
                                                           const gpu::MemoryUse& use,
                                                           std::shared_ptr<const void> deviceOwner) {
  ASSIGN(gpu::DeviceBuffer buffer, gpu::DeviceBuffer::create(device, bytes, use));
  const std::shared_ptr<SharedMemory> memory(new SharedMemory(std::move(buffer), std::move(deviceOwner)));
  Directory::instance().add(memory->address_, memory);
  return memory;
}

SharedMemory::~SharedMemory() {
  free();
}

void SharedMemory::free() {
  if (!buffer_) return;
  Directory::instance().remove(address_);
  buffer_.reset();
}

std::shared_ptr<SharedMemory> SharedMemory::at(CUdeviceptr address) {
  return Directory::instance().at(address);
}

}  // namespace tutti::p2p
