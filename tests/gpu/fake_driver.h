// A CUDA driver for tests of error paths: keeps books instead of doing work, and fails where it is told.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "gpu/driver.h"

namespace tutti::test {

/// Fills a Driver table with calls that only count. One at a time (the table holds plain functions), used by one
/// thread. CUdevice values are not ordinals here: device i is handle i + kFirstHandle.
class FakeDriver {
 public:
  static constexpr int kDevices = 2;
  static constexpr CUdevice kFirstHandle = 10;
  static constexpr CUstreamCaptureMode kCallerMode = CU_STREAM_CAPTURE_MODE_GLOBAL;

  FakeDriver();
  FakeDriver(const FakeDriver&) = delete;
  ~FakeDriver();

  gpu::Driver& driver() { return driver_; }
  /// The nth call of that name from now on returns `code`, once.
  void failNth(const std::string& call, CUresult code, int nth = 1) { failures_[call] = {code, calls_[call] + nth}; }
  int calls(const std::string& call) { return calls_[call]; }
  /// "cuMemAlloc 1, ..." for everything created and not given back; "" when the books are even.
  std::string leaks() const;
  /// Handle of the context of `ordinal`, as cuDevicePrimaryCtxRetain gives it.
  CUcontext contextOf(int ordinal) {
    return reinterpret_cast<CUcontext>(&contexts_[static_cast<std::size_t>(ordinal)]);
  }
  void pushContext(int ordinal) { stack_.push_back(contextOf(ordinal)); }
  CUcontext current() const { return stack_.empty() ? nullptr : stack_.back(); }
  std::size_t stackDepth() const { return stack_.size(); }
  CUstreamCaptureMode captureMode() const { return mode_; }

  bool peerAccess = true;               ///< answer of cuDeviceCanAccessPeer
  bool vmmSupported = true;             ///< attributes of the devices
  bool knowsPointers = true;            ///< whether cuPointerGetAttribute succeeds
  CUresult streamState = CUDA_SUCCESS;  ///< answer of cuStreamQuery and cuEventQuery
  std::vector<CUmemAccessDesc> access;  ///< what the last cuMemSetAccess granted
  std::size_t createdBytes = 0;         ///< of the last cuMemCreate
  std::size_t mappedBytes = 0;          ///< what cuMemGetAddressRange tells

 private:
  struct Failure {
    CUresult code;
    int at;
  };
  static FakeDriver& self();
  CUresult begin(const char* call);
  template <class T>
  T make(const char* kind) {
    const std::size_t handle = ++lastHandle_ * 4096;
    live_[kind].insert(handle);
    return reinterpret_cast<T>(handle);
  }
  CUresult drop(const char* kind, std::size_t handle);
  void fillDevices();
  void fillContexts();
  void fillObjects();
  void fillMemory();
  void fillVmm();
  void fillModules();

  gpu::Driver driver_;
  std::map<std::string, int> calls_;
  std::map<std::string, Failure> failures_;
  std::map<std::string, std::multiset<std::size_t>> live_;
  std::vector<CUcontext> stack_;
  std::array<int, kDevices> contexts_{};
  CUstreamCaptureMode mode_ = kCallerMode;
  std::size_t lastHandle_ = 0;
};

}  // namespace tutti::test
