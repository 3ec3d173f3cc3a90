// How a stall is found and told, tick by tick; the face is stalls.h.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "comm/diagnosis/counter_snapshot.h"
#include "comm/diagnosis/diagnosis.h"
#include "comm/diagnosis/progress_scan.h"
#include "comm/diagnosis/stall_clock.h"
#include "comm/diagnosis/stall_state.h"
#include "comm/diagnosis/stalls.h"
#include "device/kernels/kernel_name.h"

namespace tutti::comm {

/// Whether the operation of that name is sends and receives.
inline bool connectsMessages(std::string_view operation) {
  return operation == device::funcName(device::Func::SendRecv);
}

/// See StallProbe.
class Probe final : public StallProbe {
 public:
  using Time = SteadyClock::time_point;

  Probe(const StallSubject& subject, StallLimits limits, std::unique_ptr<CounterReader> reader, MovementSweep sweep)
      : at_(subject), clock_(limits), reader_(std::move(reader)), sweep_(std::move(sweep)) {}
  void tick(Time now, bool kernelsRun) override;
  void inquire() override { inquired_ = true; }
  bool pending() const override { return inquired_; }
  std::vector<std::string> takeAnswer() override { return std::exchange(answer_, {}); }
  void watch(Time now) override { watchedAt_ = now; }
  milliseconds unmoved(Time now) const override { return clock_.unmoved(now); }
  bool suspects(Time now) const override { return clock_.suspects(now); }
  bool still() const override { return stalled_ || clock_.reported(); }
  RankState standing(Time now) const override { return state(now); }
  void heed(const CircleNews& news, Time now) override;

 private:
  static constexpr milliseconds kBetweenWords{1000};
  void rest(Time now);
  void look(Time now);
  void read(Time now);
  void took(Time now, std::uint64_t fingerprint, bool deaf);
  void ask(Time now);
  void noteStill(Time now, bool stalled);
  bool mayBeCircle(Time now) const;
  void conclude(Time now);
  void say(Time now, bool asks);
  bool confirmed(Time now);
  bool fresh(Time now) const;
  bool watched(Time now) const;
  std::uint64_t fingerprint() const;
  bool answered() const;
  RankState state(Time now) const;
  void noteWaits(RankState& own) const;
  void noteAwaited(RankState& own) const;
  std::vector<std::string> awaited() const;
  void noteHolds(RankState& own) const;
  std::string headline(const RankState& own) const;
  Diagnosis verdict(const RankState& own) const;
  std::vector<std::string> waits() const;
  std::vector<std::string> underWay() const;
  const proxy::ProgressTask* collNet() const { return at_.collNet ? at_.collNet() : nullptr; }
  std::string peerText(int rank) const;
  void tellCircle(Time now);
  void tell(Time now, const std::string& text) const;
  void tellStall(Time now, const std::string& head, const std::string& verdict,
                 const std::vector<std::string>& waits) const;

  const StallSubject at_;
  StallClock clock_;
  std::unique_ptr<CounterReader> reader_;
  MovementSweep sweep_;
  bool kernelsRun_ = false;
  const char* connecting_ = nullptr;  ///< in a call of that name, which waits for peers
  bool stalled_ = false;              ///< found to be, with all that could move
  std::optional<Time> stillSince_;    ///< stalled, or said to be
  CircleNews circle_;                 ///< of what is still
  bool circleTold_ = false;
  bool deaf_ = false;            ///< the device does not let itself be read
  std::optional<Time> begunAt_;  ///< of a reading under way
  std::optional<Time> readAt_;
  std::optional<Time> watchedAt_;
  std::optional<Time> askedAt_;  ///< others are being asked since then
  Time saidAt_{};
  Time notBefore_{};   ///< others are not asked again
  bool owes_ = false;  ///< others have asked
  bool inquired_ = false;
  std::vector<std::string> answer_;
};

}  // namespace tutti::comm
