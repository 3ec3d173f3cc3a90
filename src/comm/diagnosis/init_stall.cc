#include "comm/diagnosis/init_stall.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/log.h"

namespace tutti::comm {

namespace {

/// A call that has taken so long is not one of many that return at once.
constexpr milliseconds kHangs{200};

double seconds(SteadyClock::time_point from, SteadyClock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

std::string nameOf(const Activity& activity) {
  std::string text = fmt::format("{} of {}", activity.call, activity.callee);
  if (activity.device >= 0) text += fmt::format(", device {}", activity.device);
  return text;
}

}  // namespace

std::string describeActivity(const Activity& activity, const std::function<std::string(int rank)>& describe) {
  if (activity.call != nullptr && activity.inCall) {
    return fmt::format("it is in the call {}, which does not return", nameOf(activity));
  }
  std::string text;
  if (activity.wait != nullptr && activity.peer >= 0) {
    text = fmt::format("it waits for {}: {}", describe(activity.peer), activity.wait);
  } else if (activity.wait != nullptr) {
    text = fmt::format("it waits for {}", activity.wait);
  }
  if (activity.call != nullptr) {
    text += fmt::format("{}its last call of a plugin was {}, which has returned", text.empty() ? "" : "; ",
                        nameOf(activity));
  }
  return text;
}

void InitStall::enter(const char* stage) {
  const std::lock_guard lock(mutex_);
  stage_ = stage;
  since_ = SteadyClock::now();
  news_ = {};
}

std::string InitStall::line(Time now) const {
  Activity activity = thread_.read();
  {
    // A call that was not there at the last look will return: a plugin that is not ready is asked again and again.
    const std::lock_guard lock(mutex_);
    if (activity.calls != calls_ || now - callsSince_ < kHangs) activity.inCall = false;
  }
  const std::string doing = describeActivity(activity, subject_.describe);
  const std::lock_guard lock(mutex_);
  return fmt::format("{}: {} has been in its stage \"{}\" for {:.1f} s{}{}", subject_.who, subject_.function, stage_,
                     seconds(since_, now), doing.empty() ? "" : ": ", doing);
}

void InitStall::tick(Time now) {
  bool everybody = false;
  {
    const std::uint64_t calls = thread_.read().calls;
    const std::lock_guard lock(mutex_);
    if (calls != calls_ || callsSince_ == Time{}) {
      calls_ = calls;
      callsSince_ = now;
    }
    if (!news_.due(subject_.limits, now - since_)) return;
    news_.tell(subject_.limits, now - since_);
    everybody = subject_.limits.alarms(now - since_);
  }
  constexpr auto kText = "Stalled init: {}. Waiting goes on; TUTTI_STALL_SEC sets when this is said";
  everybody ? alarm(kText, line(now)) : warn(kText, line(now));
}

void HungCalls::tick(Time now, const StallLimits& limits, const std::vector<const ActivitySlot*>& told) {
  ActivitySlot::forEach([&](const ActivitySlot& slot) {
    const Activity activity = slot.read();
    if (!activity.inCall || activity.call == nullptr) {
      seen_.erase(&slot);
      return;
    }
    Seen& seen = seen_[&slot];
    if (seen.since == Time{} || seen.activity.calls != activity.calls) seen = {activity, now, {}};
    if (std::find(told.begin(), told.end(), &slot) != told.end()) seen.news.leaveToOthers();
    const auto age = now - seen.since;
    if (!seen.news.due(limits, age)) return;
    seen.news.tell(limits, age);
    constexpr auto kText = "Stall: the call {} has not returned for {:.1f} s: {} waits for it";
    const bool network = std::string_view(activity.callee).starts_with("network ");
    const std::string_view waits = network ? "what goes over that network" : "its caller";
    limits.alarms(age) ? alarm(kText, nameOf(activity), seconds(seen.since, now), waits)
                       : warn(kText, nameOf(activity), seconds(seen.since, now), waits);
  });
}

std::vector<std::string> HungCalls::lines(Time now) const {
  std::vector<std::string> lines;
  for (const auto& [slot, seen] : seen_) {
    if (now - seen.since < std::chrono::seconds(1)) continue;
    lines.push_back(
        fmt::format("the call {} has not returned for {:.1f} s", nameOf(seen.activity), seconds(seen.since, now)));
  }
  return lines;
}

}  // namespace tutti::comm
