#include "bootstrap/loop/known_losses.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/never_destroyed.h"

namespace tutti::bootstrap {
namespace {

constexpr std::size_t kMostKept = 64;
/// In front of what another communicator of the process said.
constexpr std::string_view kPerhaps = ", perhaps because another one of its process had failed: ";

}  // namespace

KnownLosses& KnownLosses::instance() {
  static NeverDestroyed<KnownLosses> losses;
  return losses.get();
}

void KnownLosses::add(KnownLoss loss) {
  loss.text.erase(std::min(loss.text.find(kPerhaps), loss.text.size()));
  const std::lock_guard lock(mutex_);
  const auto same = std::find_if(losses_.begin(), losses_.end(), [&](const KnownLoss& known) {
    return loss.pid != 0 && known.pid == loss.pid && known.host == loss.host;
  });
  if (same != losses_.end()) {
    if (same->cause > loss.cause) return;
    losses_.erase(same);
  }
  losses_.push_back(std::move(loss));
  if (losses_.size() > kMostKept) losses_.erase(losses_.begin());
}

std::optional<KnownLoss> KnownLosses::of(std::string_view host, int pid, SteadyClock::time_point since) const {
  const std::lock_guard lock(mutex_);
  for (const KnownLoss& known : losses_) {
    if (known.cause >= Cause::Failed && known.pid == pid && known.host == host && known.when >= since) return known;
  }
  return std::nullopt;
}

void KnownLosses::addAbort(KnownLoss loss) {
  const std::size_t given = loss.text.find(kPerhaps);
  loss.cause = given == std::string::npos ? Cause::Aborted : Cause::Observed;
  if (given != std::string::npos) loss.text.erase(0, given + kPerhaps.size());
  add(std::move(loss));
}

std::optional<KnownLoss> KnownLosses::latest(SteadyClock::time_point since) const {
  const std::lock_guard lock(mutex_);
  std::optional<KnownLoss> abort;
  for (auto known = losses_.rbegin(); known != losses_.rend(); ++known) {
    if (known->when < since) continue;
    if (known->cause != Cause::Aborted) return *known;
    if (!abort) abort = *known;
  }
  return abort;
}

std::string KnownLosses::perhapsBecause(SteadyClock::time_point begun) const {
  const auto other = latest(std::max(begun, SteadyClock::now() - kNotLongBefore));
  return other ? fmt::format("{}{}", kPerhaps, other->text) : std::string();
}

}  // namespace tutti::bootstrap
