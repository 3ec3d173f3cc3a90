#include "bootstrap/link/gate.h"

#include <algorithm>
#include <bit>
#include <cerrno>

#include "base/log.h"

namespace tutti::bootstrap {
namespace {

/// Strangers are counted for so long at most.
constexpr milliseconds kWindow{100};
/// At more of them the gate is narrowed until about half as many may be expected in a window, at fewer than kFew it is
/// opened by half. So a flood of whatever size brings 1000 a second at most, which take a hundredth of a processor, and
/// a client that cannot knock still has a chance.
constexpr std::uint64_t kMany = 100;
constexpr std::uint64_t kFew = 25;
/// So many tell how fast they come.
constexpr std::uint64_t kSample = 32;
/// They may all have come in the moment in which they are looked at.
constexpr double kShortestMs = 3;
constexpr std::uint32_t kNarrowest = 1U << 16;

/// At a listener of a process that was besieged not longer ago than this, so many are enough.
constexpr auto kGateMemory = std::chrono::seconds(10);
constexpr std::uint64_t kSuspicious = 4;

}  // namespace

Sieges& Sieges::ofProcess() {
  static Sieges sieges;
  return sieges;
}

void Sieges::remember(std::uint32_t oneIn) {
  oneIn_.store(oneIn);
  when_.store(SteadyClock::now());
}

std::uint32_t Sieges::last() const {
  return SteadyClock::now() - when_.load() < kGateMemory ? oneIn_.load() : 1;
}

void Gate::sawStrangers(std::uint64_t count, std::span<const KnockWord> knock) {
  if (refused_ || count == 0) return;
  tend();
  if (window_.isNever()) {
    knock_.assign(knock.begin(), knock.end());
    startCounting();
  }
  seen_ += count;
  const std::uint32_t before = everNarrow_ ? 1 : sieges_.last();
  if (before > 1 && seen_ >= kSuspicious) return set(before);
  if (seen_ < kSample) return;
  const double ms = std::max(secondsSince(since_) * 1e3, kShortestMs);
  const auto inWindow = static_cast<double>(seen_) * static_cast<double>(kWindow.count()) / ms;
  if (inWindow <= static_cast<double>(kMany) || oneIn_ >= kNarrowest) return;
  const auto factor = std::bit_ceil(static_cast<std::uint32_t>(inWindow * 2 / static_cast<double>(kMany)));
  set(std::min(oneIn_ * std::min(factor, kNarrowest), kNarrowest));
}

void Gate::tend() {
  if (window_.isNever() || !window_.expired()) return;
  if (seen_ < kFew && oneIn_ > 1) return set(oneIn_ / 2);
  startCounting();
  if (oneIn_ == 1) window_ = Deadline::never();
}

void Gate::startCounting() {
  seen_ = 0;
  since_ = SteadyClock::now();
  window_ = Deadline::in(kWindow);
}

void Gate::set(std::uint32_t oneIn) {
  startCounting();
  if (oneIn > 1 && !answerKnocks(listener_, knock_, oneIn)) {
    info(kBootstrap, "Bootstrap: the system cannot filter clients ({}): strangers cost more here", errnoText(errno));
    refused_ = true;
    oneIn = 1;
  }
  if (oneIn == 1) {
    answerEverybody(listener_);
    window_ = Deadline::never();
  } else {
    everNarrow_ = true;
    sieges_.remember(oneIn);
  }
  oneIn_ = oneIn;
}

}  // namespace tutti::bootstrap
