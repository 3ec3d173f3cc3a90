#include "softgpu/device/helper.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "softgpu/device/engine.h"
#include "softgpu/device/machine.h"
#include "softgpu/device/waiting.h"

namespace tutti::softgpu {
namespace {

/// An engine's thread that has a processor looks more often than this, or holds the seat.
constexpr std::int64_t kUnattended = 1500;

}  // namespace

SignalsOff::SignalsOff() {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before_);
}
SignalsOff::~SignalsOff() {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void SignalsOff::letIn() {
  sigset_t blocked;
  ::pthread_sigmask(SIG_SETMASK, &before_, &blocked);
  ::pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
}

void relax() {
#if defined(__x86_64__)
  for (int i = 0; i < 8; ++i) _mm_pause();
#endif
}

bool Helper::help(const Engine* self, std::int64_t now, bool eager) {
  const StartedEngines& engines = *machine().engines;
  bool progress = false;
  for (auto place = engines.first(); place != StartedEngines::kNone; place = engines.next(place)) {
    Engine& engine = engines.at(place);
    if (&engine == self || !engine.busy()) continue;
    Seen& seen = seenOf(place);
    const std::uint32_t looks = engine.looks();
    if (looks != seen.looks || seen.since == 0) {
      seen.looks = looks;
      seen.since = now;
    }
    if (!eager && !engine.asleep() && now - seen.since < kUnattended) continue;
    seen.helped = true;
    if (engine.attend()) progress = true;
  }
  return progress;
}

Helper::Seen& Helper::seenOf(std::size_t place) {
  if (place < few_.size()) return few_[place];
  const std::size_t index = place - few_.size();
  if (index >= more_.size()) more_.resize(index + 1);
  return more_[index];
}

void Helper::leaveOne(Seen& seen, std::size_t place) {
  if (!seen.helped) return;
  seen.helped = false;
  Engine& engine = machine().engines->at(place);
  if (engine.busy()) engine.takeOver();
}

void Helper::leave() {
  for (std::size_t i = 0; i < few_.size(); ++i) leaveOne(few_[i], i);
  for (std::size_t i = 0; i < more_.size(); ++i) leaveOne(more_[i], few_.size() + i);
}

}  // namespace tutti::softgpu
