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
  engines_ = engines.size();
  if (engines_ > few_.size() + more_.size()) more_.resize(engines_ - few_.size());
  bool progress = false;
  for (std::size_t i = 0; i < engines_; ++i) {
    Engine* engine = engines.at(i);
    if (engine == nullptr || engine == self || !engine->busy()) continue;
    Seen& seen = seenOf(i);
    const std::uint32_t looks = engine->looks();
    if (looks != seen.looks || seen.since == 0) {
      seen.looks = looks;
      seen.since = now;
    }
    if (!eager && !engine->asleep() && now - seen.since < kUnattended) continue;
    seen.helped = true;
    if (engine->attend()) progress = true;
  }
  return progress;
}

void Helper::leave() {
  const StartedEngines& engines = *machine().engines;
  for (std::size_t i = 0; i < engines_; ++i) {
    Seen& seen = seenOf(i);
    if (!seen.helped) continue;
    seen.helped = false;
    Engine* engine = engines.at(i);
    if (engine->busy()) engine->takeOver();
  }
}

}  // namespace tutti::softgpu
