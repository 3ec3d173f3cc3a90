// What runs after what among kernels that share connections: across streams, captures, and replays of graphs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "gpu/context.h"
#include "gpu/event.h"

namespace tutti::gpu {
struct CaptureState;
}

namespace tutti::comm {

/// One event carries the order: whatever runs waits for its last record and then records it; in a graph, nodes do that
/// at every replay. Of one launcher, or of several that use the same connections. Used by one thread at a time.
class LaunchOrder {
 public:
  /// Which launches wait for each other.
  struct Rules {
    bool mix = true;     ///< graphs wait for launches and other graphs and the other way round
    bool within = true;  ///< launches captured in one graph on several streams wait for each other
  };
  /// The device must outlive the result.
  static Result<std::shared_ptr<LaunchOrder>> create(const gpu::Device& device, Rules rules);

  /// Makes what comes on the last of `streams` wait for what is before it, and for the other streams. The device's
  /// context must be current; `capture` is the state of all the streams.
  Status before(const gpu::CaptureState& capture, std::span<const CUstream> streams);
  /// Makes what comes after wait for what is on the last of `streams` by now, on the other streams as well.
  Status after(const gpu::CaptureState& capture, std::span<const CUstream> streams);
  /// In place of after(), outside captures and for one stream: the launch itself records last(), when it begins.
  Status afterBegin(CUstream main);

  /// The end of the last launch or replay. Any thread may ask it.
  const gpu::Event& last() const { return last_; }

 private:
  /// Where a capture with launches stands. Captures go on side by side, though rarely.
  struct CaptureMark {
    unsigned long long id;
    gpu::Event last;
  };
  LaunchOrder(const gpu::Device& device, Rules rules, gpu::Event last, gpu::Event join)
      : device_(&device), rules_(rules), last_(std::move(last)), join_(std::move(join)) {}
  CaptureMark* markOf(const gpu::CaptureState& capture);
  Status beforeCaptured(const gpu::CaptureState& capture, CUstream main);

  const gpu::Device* device_;
  Rules rules_;
  gpu::Event last_;
  gpu::Event join_;                    ///< scratch: brings the other streams of a group in
  std::vector<CaptureMark> marks_;     ///< the latest captures, newest last
  unsigned long long lastStream_ = 0;  ///< id of the stream of the last launch outside a capture, 0: unknown or none
  bool everCaptured_ = false;
};

}  // namespace tutti::comm
