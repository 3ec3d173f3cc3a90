#include "transport/p2p/memory.h"

#include <utility>

#include "transport/common/process_directory.h"

namespace tutti::p2p {

using Directory = transport::ProcessDirectory<SharedMemory>;

std::shared_ptr<SharedMemory> SharedMemory::create(std::shared_ptr<Slab> slab, std::size_t offset) {
  const std::shared_ptr<SharedMemory> memory(new SharedMemory(std::move(slab), offset));
  Directory::instance().add(memory->address_, memory);
  return memory;
}

SharedMemory::~SharedMemory() {
  free();
}

void SharedMemory::free() {
  if (slab_ == nullptr) return;
  Directory::instance().remove(address_);
  slab_.reset();
}

std::shared_ptr<SharedMemory> SharedMemory::at(CUdeviceptr address) {
  return Directory::instance().at(address);
}

}  // namespace tutti::p2p
