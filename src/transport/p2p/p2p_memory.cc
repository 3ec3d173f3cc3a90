#include "transport/p2p/p2p_memory.h"

#include <map>

#include "base/never_destroyed.h"

namespace tutti::p2p {

namespace {

/// Everything of this process, by address.
struct Directory {
  std::mutex mutex;
  std::map<CUdeviceptr, std::weak_ptr<SharedMemory>> memory;
};

Directory& directory() {
  static NeverDestroyed<Directory> instance;
  return instance.get();
}

}  // namespace

Result<std::shared_ptr<SharedMemory>> SharedMemory::create(const Device& device, std::size_t bytes,
                                                           std::string_view about,
                                                           std::shared_ptr<const void> deviceOwner) {
  ASSIGN(DeviceBuffer buffer, DeviceBuffer::create(device, bytes, about));
  const std::shared_ptr<SharedMemory> memory(new SharedMemory(std::move(buffer), std::move(deviceOwner)));
  const std::lock_guard lock(directory().mutex);
  directory().memory[memory->address_] = memory;
  return memory;
}

SharedMemory::~SharedMemory() { free(); }

void SharedMemory::free() {
  if (!buffer_) return;
  {
    // Before the address can be somebody else's.
    const std::lock_guard lock(directory().mutex);
    directory().memory.erase(address_);
  }
  buffer_.reset();
}

std::shared_ptr<SharedMemory> SharedMemory::at(CUdeviceptr address) {
  const std::lock_guard lock(directory().mutex);
  const auto known = directory().memory.find(address);
  return known == directory().memory.end() ? nullptr : known->second.lock();
}

}  // namespace tutti::p2p
