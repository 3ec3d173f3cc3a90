// Shared host memory as a device addresses it.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "base/status.h"
#include "gpu/context.h"
#include "gpu/memory.h"
#include "transport/shm/segment.h"

namespace tutti::shm {

/// A segment that is page-locked in this process; ranks of the process share it, and it lives until the last of them
/// lets go: kernels of each may still write after another has failed and gone. Any thread.
class Region {
 public:
  /// `deviceOwner`, which may be null, keeps the device for as long as the region.
  static Result<std::shared_ptr<Region>> create(const gpu::Device& device, Segment segment, std::string_view about,
                                                std::shared_ptr<const void> deviceOwner);
  Region(const Region&) = delete;
  ~Region();

  std::byte* host() const { return segment_.memory().data(); }
  /// For the device it was created with; for others of the process see addressOnDevice().
  std::byte* onDevice() const { return registered_.onDevice(); }
  /// See Segment.
  [[nodiscard]] Fd takeDescriptor() { return segment_.takeDescriptor(); }

  /// What this process has at `host`, if it has.
  static std::shared_ptr<Region> at(std::uint64_t host);

 private:
  Region(Segment segment, gpu::RegisteredMemory registered, std::shared_ptr<const void> deviceOwner)
      : deviceOwner_(std::move(deviceOwner)), segment_(std::move(segment)), registered_(std::move(registered)) {}
  std::shared_ptr<const void> deviceOwner_;  ///< goes last
  Segment segment_;
  gpu::RegisteredMemory registered_;  ///< goes first
};

}  // namespace tutti::shm
