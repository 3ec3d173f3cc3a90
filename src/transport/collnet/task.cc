#include "transport/collnet/task.h"

#include <fmt/format.h>

#include <utility>

namespace tutti::collnet {

void CollNetTask::add(SetSetup setup) {
  const std::size_t place = count_.load(std::memory_order_relaxed);
  sets_[place] = std::make_unique<SetDriver>(connection_, std::move(setup));
  count_.store(place + 1, std::memory_order_release);
}

std::shared_ptr<proxy::StepEvents> CollNetTask::stepEvents(std::size_t set, device::Direction direction) const {
  return sets_[set]->stepEvents(direction);
}

const SetDriver* CollNetTask::busyBeside(std::size_t set) const {
  for (std::size_t i = 0; i < count_.load(std::memory_order_relaxed); ++i) {
    if (i != set && sets_[i]->underWay()) return sets_[i].get();
  }
  return nullptr;
}

Result<bool> CollNetTask::advanceSets() {
  bool any = false;
  const std::size_t count = count_.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < count; ++i) {
    ASSIGN(const bool finished, sets_[i]->finish());
    any = any || finished;
  }
  for (std::size_t i = 0; i < count; ++i) {
    ASSIGN(const bool posted, sets_[i]->post(busyBeside(i)));
    any = any || posted;
    sets_[i]->tell();
  }
  return any;
}

Result<bool> CollNetTask::advance() {
  if (failed_) return *failed_;
  auto advanced = advanceSets();
  if (!advanced.ok()) failed_ = advanced.status();
  return advanced;
}

bool CollNetTask::quiet() const {
  for (std::size_t i = 0; i < count_.load(std::memory_order_relaxed); ++i) {
    if (!sets_[i]->quiet()) return false;
  }
  return true;
}

CollNetTask::Shown CollNetTask::shown() const {
  Shown shown;
  for (std::size_t i = 0; i < count_.load(std::memory_order_acquire); ++i) {
    const SetFacts facts = sets_[i]->facts();
    const bool idle = facts.wait == SetWait::Kernel, shownIdle = shown.facts.wait == SetWait::Kernel;
    const bool further = idle == shownIdle && facts.step > shown.facts.step;
    if (shown.set == nullptr || further || (shownIdle && !idle)) shown = {sets_[i].get(), facts};
  }
  return shown;
}

proxy::PendingSend CollNetTask::hold() const {
  return {shown().facts.atNetwork() ? proxy::BlockedBy::Network : proxy::BlockedBy::Nobody, -1};
}

std::string CollNetTask::describe() const {
  const auto [set, facts] = shown();
  if (set == nullptr) return fmt::format("CollNet of {}: no lanes", connection_.path.brief());
  if (facts.atNetwork()) {
    const char* const what = facts.wait == SetWait::Room         ? "waits for the network to take it"
                             : facts.wait == SetWait::Completion ? "waits for the network"
                                                                 : "waits for the flush of what came";
    return fmt::format("CollNet call {} ({}) of {}: {}", facts.call, callText(facts.word, facts.bytes),
                       connection_.path.brief(), what);
  }
  std::string what = "a kernel";
  if (facts.wait == SetWait::Fill) what = fmt::format("the kernel on channel {} to fill its slot", facts.channel);
  if (facts.wait == SetWait::Free) what = fmt::format("the kernel on channel {} to free a slot", facts.channel);
  return fmt::format("CollNet of {}: step {} of {}, waits for {}", connection_.path.brief(), facts.step, set->name(),
                     what);
}

}  // namespace tutti::collnet
