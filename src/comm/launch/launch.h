// Puts prepared kernels on the application's stream, one communicator's after the other.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "comm/launch/launch_note.h"
#include "gpu/driver.h"

namespace tutti {
class Abort;
}
namespace tutti::gpu {
class Device;
class Event;
struct CaptureState;
}  // namespace tutti::gpu
namespace tutti::proxy {
class ProgressGroup;
}

namespace tutti::comm {

class GraphRefs;
class ImplicitOrder;
class KernelTimes;
class LaunchMarks;
class LaunchOrder;
struct LaunchedCall;
struct PreparedLaunch;

/// How a communicator launches: the order of launches and graphs among each other, who hears of graphs.
struct LaunchRules {
  bool mix = true;                           ///< LaunchOrder::Rules
  bool orderWithin = true;                   ///< the same
  GraphRefs* holds = nullptr;                ///< told of each graph with launches; may be null
  bool marks = false;                        ///< what is in front of a launch can be asked (launch_marks.h)
  bool remoteDomain = false;                 ///< gpu::KernelLaunch::remoteDomain
  ImplicitOrder* across = nullptr;           ///< order of all launches of the device; null: there is none
  std::shared_ptr<LaunchOrder> shared = {};  ///< of several launchers, whose rules then hold; null: its own
};

/// Launches the kernels of one communicator on its device. Kernels of one communicator share its connections, and those
/// of a family share theirs, so they run one after the other even when the application uses several streams, captures
/// some of them in graphs and replays those between other launches: each launch and each replay waits for the one
/// before it, in the order of the application's calls, unless the rules leave that to the application (launch_order.h).
/// Its host thread never waits. Used by one thread at a time, but for what says "any thread".
class Launcher {
 public:
  /// The device, `rules.holds` and `rules.across` must outlive the launcher.
  static Result<std::unique_ptr<Launcher>> create(const gpu::Device& device, LaunchRules rules = {});
  ~Launcher();

  /// Launches in order. `streams` are all streams that the application gave in this group, in order of appearance, at
  /// least one: the kernels run on the last one, wait for all, and all wait for the kernels. The caller's current
  /// device does not matter and does not change. `driven`: connections that a host thread has to drive while the
  /// kernels run, at every replay as well; must outlive graphs; null: none. `atStart`: an event of the application's,
  /// recorded when the first kernel may begin, at every replay as well; null: none. `before`: called before anything is
  /// put on a stream, with whether that is captured; empty: not. Errors: ncclInvalidUsage if some streams are captured
  /// and others not (or by another graph), which `before` does not hear of; ncclUnhandledCudaError naming the
  /// operation.
  Status launch(std::span<const PreparedLaunch> launches, std::span<const CUstream> streams,
                proxy::ProgressGroup* driven = nullptr, CUevent atStart = nullptr,
                const std::function<void(bool captured)>& before = {});
  Status launch(std::span<const PreparedLaunch> launches, CUstream stream);

  /// What the next launch() is, for marks(). May be called by its `before`.
  void callNext(const LaunchedCall& call);
  /// What is in front of its launches; null: the rules want none. Any thread.
  LaunchMarks* marks() const { return marks_.get(); }

  /// The next launch() is launch `number` of communicator `comm` in a trace, which is told when its kernels ran.
  void traceNext(std::uint16_t comm, std::uint32_t number);
  /// Has the trace told of kernels that have ended. The device's context is current.
  void harvestTimes();

  /// Waits on the host until the last launch, or the last replay of a graph with launches, is done; not for others of
  /// the same order.
  Status drain(const Abort* abort, std::chrono::milliseconds bound) const;
  /// At most as long as the library waits for a device.
  Status drain(const Abort* abort) const;

  /// Whether these streams are being captured, as launch() finds them. Errors: launch()'s.
  Result<bool> captured(std::span<const CUstream> streams) const;
  /// Whether any launch went into a graph so far.
  bool everCaptured() const { return everCaptured_.load(std::memory_order_relaxed); }

  /// Whether something was launched, or could have been replayed, since query() last said that all is done. Any thread.
  bool mayBeBusy() const { return everCaptured() || launching() || launched_.load() != seenDone_.load(); }
  /// Whether a thread is about to launch what counts() counts already, or has failed to.
  bool launching() const { return launching_.load() != 0; }
  /// The same for launches alone, as query() last saw them: asks nobody, so it may be called where nothing may wait.
  bool launchedUnseen() const { return launched_.load() != seenDone_.load(); }
  /// CUDA_SUCCESS: all is done; CUDA_ERROR_NOT_READY: not yet; otherwise the device has failed. Never waits, logs
  /// nothing. Any thread.
  CUresult query();
  /// "operation AllReduce (kernel tutti_AllReduce_…)", "none" before the first. Any thread.
  std::string lastLaunch() const;
  /// "AllReduce"; empty before the first. Any thread.
  std::string lastOperation() const;
  /// The same and more. Replays of graphs are not launches. Any thread.
  LaunchNote lastNote() const;
  /// Since the start. Any thread.
  LaunchCounts counts() const;

 private:
  void note(const PreparedLaunch& launch);
  void countMessages();
  std::string lastLaunchLocked() const;
  Launcher(const gpu::Device& device, const LaunchRules& rules, std::shared_ptr<LaunchOrder> order,
           std::unique_ptr<gpu::Event> own, std::unique_ptr<LaunchMarks> marks);
  void mark(const gpu::CaptureState& capture, std::span<const PreparedLaunch> launches, CUstream main);
  Status launchAll(std::span<const PreparedLaunch> launches, CUstream main, CUevent begun, bool& any);
  const gpu::Event& done() const;
  Result<gpu::CaptureState> commonCapture(std::span<const CUstream> streams) const;
  Status tellOfGraph(const gpu::CaptureState& capture);
  Status noteEnd(const gpu::CaptureState& capture, CUstream main);
  Status recordForCaller(const gpu::CaptureState& capture, CUstream stream, CUevent event) const;
  Status launchOne(const PreparedLaunch& launch, CUstream stream, CUevent begun);
  /// What `stream` captures from here on begins, at every replay, with a call of `function` on a host thread.
  Status callAtReplay(CUstream stream, CUhostFn function, proxy::ProgressGroup* driven) const;

  const gpu::Device* device_;
  GraphRefs* holds_;
  ImplicitOrder* across_;
  bool remoteDomain_;
  std::shared_ptr<LaunchOrder> order_;
  std::unique_ptr<gpu::Event> own_;          ///< end of its last launch or replay, where the order is not its own
  std::deque<unsigned long long> captures_;  ///< the latest ones that `holds_` has been told of
  std::atomic<bool> everCaptured_{false};
  std::atomic<int> launching_{0};  ///< calls that have begun, and not ended well
  std::atomic<std::uint64_t> launched_{0};
  std::atomic<std::uint64_t> seenDone_{0};
  struct Traced {
    std::uint16_t comm = 0;
    std::uint32_t number = 0;  ///< 0: the next launch is not traced
  };
  Traced traced_;
  std::unique_ptr<LaunchMarks> marks_;         ///< null: nobody asks
  std::unique_ptr<LaunchedCall> next_;         ///< what callNext() has said
  std::unique_ptr<KernelTimes> times_;         ///< made by the first launch that is traced
  std::atomic<KernelTimes*> timing_{nullptr};  ///< the same, for other threads
  mutable std::mutex namesMutex_;
  std::string lastOperation_;
  std::string lastKernel_;
  LaunchNote note_;                      ///< without its text
  std::vector<MessageCounts> messages_;  ///< by rank
};

}  // namespace tutti::comm
