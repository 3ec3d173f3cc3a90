// What profilers hear of the steps that a host thread moves for kernels: the events ProxyOp and ProxyStep.
//
// Neither kernels nor networks know operations: they count steps, for each connection, direction and protocol. Who
// launches kernels knows how many steps an operation takes of each (comm/connect/step_counts.h) and says so here,
// launch by launch, whether anybody wants to hear of it or not: so a step's number tells whose it is.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace tutti::plugin {
class EventSink;
}

namespace tutti::proxy {

/// What an operation will move over one connection by one protocol in one direction.
struct ExpectedSteps {
  std::shared_ptr<plugin::EventSink> sink = {};  ///< null: nobody listens
  int mask = 0;                                  ///< kinds that are told of it, with those above them
  void* parent = nullptr;                        ///< handle of the operation's own event
  int rank = 0;
  int peer = 0;
  int channel = 0;
  bool sends = false;
  std::uint64_t steps = 0;
  std::uint32_t chunkBytes = 0;
};

/// How far a connection has come: for each stage of a step the number of the first step that has not reached it.
/// A sender's: always kAtOnce; filled by a kernel; taken by the network; sent. A receiver's: its receive is posted;
/// come; where kernels see it; consumed.
using StepStages = std::array<std::uint64_t, 4>;

/// One protocol of one connection in one direction. expect() and forget(): any thread. The rest: whoever makes the
/// engine's rounds. Whoever hears of the steps does so on that thread.
class StepEvents {
 public:
  static constexpr std::uint64_t kAtOnce = ~std::uint64_t{0};
  /// Steps that may be under way at a time; a power of two.
  static constexpr std::uint64_t kMost = 32;

  /// `first`: the next step's number. `window`: so many steps may be under way before the first of them is over, at
  /// most kMost / 2.
  StepEvents(std::uint64_t first, std::uint32_t window);
  StepEvents(const StepEvents&) = delete;
  StepEvents& operator=(const StepEvents&) = delete;
  ~StepEvents();

  /// The next operation's, before its kernel is launched.
  void expect(ExpectedSteps operation);
  /// Steps come that nobody has counted: nothing more is told.
  void forget();

  /// Whether there is anything to tell; takes up what was expected. To be asked at every turn, and whenever a kernel's
  /// word was read: its operation was expected before.
  bool look() {
    if (pending_.load(std::memory_order_acquire)) [[unlikely]]
      take();
    return follows_;
  }
  /// As the last look() has said, unless follow() has come to the end of all since.
  bool on() const { return follows_; }
  // After look() has said yes:
  /// How much a step carries, as soon as that is known.
  void setBytes(std::uint64_t step, std::uint32_t bytes) const;
  /// Tells of all that has changed. Most turns of the engine change nothing.
  void follow(const StepStages& reached) {
    const bool same = reached[0] == reached_[0] && reached[1] == reached_[1] && reached[2] == reached_[2] &&
                      reached[3] == reached_[3];
    if (follows_ && (grown_ || !same)) followOn(reached);
  }
  /// What a network that tells events is given with the request for a step (plugin::NetBuffer::events).
  void* requestOf(std::uint64_t step);

  /// The connection ends: so does every event. Nothing is expected any more.
  void close();

 private:
  struct Operation;
  struct Step;
  struct Told;
  static bool isHeard(const ExpectedSteps& operation);
  static void setRequest(Step& step, const ExpectedSteps& what);
  void take();
  void followOn(const StepStages& reached);
  /// Goes past steps of operations that nobody hears of, in one go.
  void passOver(std::uint64_t over);
  /// Nothing is left to tell: until somebody wants to hear again, steps are only counted.
  void rest();
  void lose();
  void begin(Operation& operation) const;
  void beginStep();
  Operation& operationOf(std::uint64_t step) const;
  /// Tells the states that steps which have begun have reached.
  void tellStages(const StepStages& reached);
  void endStep();
  void endAll();

  std::atomic<bool> pending_{false};
  std::mutex mutex_;
  // Under `mutex_`:
  std::vector<ExpectedSteps> expected_;  ///< until take()
  bool awake_ = false;                   ///< somebody hears of an operation that is expected, or not over
  std::uint64_t passed_ = 0;             ///< else: steps of operations that nobody hears of
  bool closed_ = false;
  bool forgotten_ = false;
  // Of whoever makes the rounds:
  const std::uint64_t next_;
  const std::uint32_t window_;
  std::vector<ExpectedSteps> taken_;  ///< storage of take()
  bool follows_ = false;
  bool lost_ = false;
  bool grown_ = false;          ///< operations were taken up since followOn()
  StepStages reached_{};        ///< as followOn() was told last
  std::unique_ptr<Told> told_;  ///< from the first operation on
};

}  // namespace tutti::proxy
