#include "transport/shm/region.h"

#include "transport/common/process_directory.h"

namespace tutti::shm {
namespace {

std::uint64_t keyOf(const std::byte* host) {
  return reinterpret_cast<std::uintptr_t>(host);
}

using Directory = transport::ProcessDirectory<Region>;

}  // namespace

Result<std::shared_ptr<Region>> Region::create(const gpu::Device& device, Segment segment, std::string_view about,
                                               std::shared_ptr<const void> deviceOwner) {
  ASSIGN(gpu::RegisteredMemory registered, gpu::RegisteredMemory::create(device, segment.memory(), about));
  const std::shared_ptr<Region> region(new Region(std::move(segment), std::move(registered), std::move(deviceOwner)));
  Directory::instance().add(keyOf(region->host()), region);
  return region;
}

Region::~Region() {
  Directory::instance().remove(keyOf(host()));
}

std::shared_ptr<Region> Region::at(std::uint64_t host) {
  return Directory::instance().at(host);
}

}  // namespace tutti::shm
