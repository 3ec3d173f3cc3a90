// What other threads do with the engine; its own thread is in engine_loop.cc.
#include "proxy/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/trace.h"

namespace tutti::proxy {

ProgressGroup::ProgressGroup(std::shared_ptr<ProgressEngine> engine, GroupHooks hooks)
    : engine_(std::move(engine)), hooks_(std::move(hooks)), ctrl_(hooks_.events) {}

ProgressGroup::~ProgressGroup() {
  const FairMutex::Visit visit(engine_->rounds_);
  // The group may be on the stack of woken ones, from the middle of which it cannot be taken. The engine finds the
  // others on its list: whoever put them on the stack leaves it a token.
  engine_->takeWoken(SteadyClock::now());
  std::erase(engine_->active_, this);
  --engine_->groups_;
}

Status ProgressGroup::add(ProgressTask* task) {
  {
    const FairMutex::Visit visit(engine_->rounds_);
    TRY(engine_->start());
    tasks_.push_back(task);
    // Otherwise the engine has it listed, or whoever held it is about to.
    if (!end_ && (dormant_ || refs_.list())) engine_->list(this, SteadyClock::now());
  }
  engine_->parker_.wake();
  return {};
}

void ProgressGroup::remove(ProgressTask* task) {
  const FairMutex::Visit visit(engine_->rounds_);
  std::erase(tasks_, task);
}

bool ProgressGroup::dead() const {
  const FairMutex::Visit visit(engine_->rounds_);
  return end_.has_value();
}

bool ProgressGroup::rests() const {
  const FairMutex::Visit visit(engine_->rounds_);
  return end_.has_value() || dormant_ || !refs_.look().listed();
}

void ProgressGroup::wake() {
  engine_->pushWoken(this);
  engine_->parker_.wake();
}

void ProgressGroup::nudge() {
  engine_->parker_.nudge();
}

ProgressEngine::ProgressEngine(std::string threadName, EngineOptions options)
    : threadName_(std::move(threadName)), options_(options) {}

Result<std::shared_ptr<ProgressEngine>> ProgressEngine::create(std::string threadName, EngineOptions options) {
  constexpr std::chrono::nanoseconds kNone{0};
  if (const auto& backoff = options.backoff;
      backoff.has_value() && (backoff->shortestPause <= kNone || backoff->longestPause < backoff->shortestPause ||
                              backoff->askEvery <= kNone || backoff->askAtLeastEvery < backoff->askEvery)) {
    return fail(ncclInternalError,
                "Progress engine \"{}\": its shortest pause and question have to take some time, and "
                "the longest ones no less. Please report this defect",
                threadName);
  }
  return std::shared_ptr<ProgressEngine>(new ProgressEngine(std::move(threadName), options));
}

ProgressEngine::~ProgressEngine() {
  stop_.store(true, std::memory_order_release);
  parker_.wake();
  thread_.join();
}

Result<std::unique_ptr<ProgressGroup>> ProgressEngine::group(GroupHooks hooks) {
  if (!hooks.busy) {
    return fail(ncclInternalError,
                "Progress engine \"{}\": a group that cannot tell whether its kernels run. Please "
                "report this defect",
                threadName_);
  }
  std::unique_ptr<ProgressGroup> group(new ProgressGroup(shared_from_this(), std::move(hooks)));
  const FairMutex::Visit visit(rounds_);
  ++groups_;
  // So that listing a group, also by the engine's thread, takes no memory.
  if (active_.capacity() < groups_) active_.reserve(2 * groups_);
  return group;
}

EngineCounters ProgressEngine::counters() const {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  return {.rounds = tally_.rounds.load(kRelaxed),
          .drives = tally_.drives.load(kRelaxed),
          .naps = tally_.naps.load(kRelaxed),
          .pauses = tally_.pauses.load(kRelaxed),
          .sleeps = tally_.sleeps.load(kRelaxed),
          .wakeUps = tally_.wakeUps.load(kRelaxed),
          .questions = tally_.questions.load(kRelaxed)};
}

void ProgressEngine::runOn(const cpu_set_t& processors) {
  const FairMutex::Visit visit(rounds_);
  if (!options_.processors && !thread_.running()) options_.processors = processors;
}

Status ProgressEngine::start() {
  if (thread_.running()) return {};
  ASSIGN(thread_, Thread::start(threadName_, [this] { loop(); }));
  return {};
}

void ProgressEngine::pushWoken(ProgressGroup* group) {
  drivers_.wanted.store(true, std::memory_order_relaxed);
  ProgressGroup* head = woken_.load(std::memory_order_relaxed);
  do {
    group->nextWoken_ = head;
  } while (!woken_.compare_exchange_weak(head, group, std::memory_order_release, std::memory_order_relaxed));
}

void ProgressEngine::takeWoken(SteadyClock::time_point now) {
  ProgressGroup* next = woken_.exchange(nullptr, std::memory_order_acquire);
  while (next != nullptr) {
    ProgressGroup* const group = next;
    next = group->nextWoken_;
    list(group, now);
  }
}

void ProgressEngine::list(ProgressGroup* group, SteadyClock::time_point now) {
  group->dormant_ = false;
  group->ctrl_.wakes();
  group->progressAt_ = now;
  group->askAt_ = now;
  group->idle_.reset();
  active_.push_back(group);
  traceStep(kProxy, "progress engine {}: {} tasks of group {} are driven from now on", threadName_,
            group->tasks_.size(), fmt::ptr(group));
  drivers_.wanted.store(true, std::memory_order_relaxed);
}

}  // namespace tutti::proxy
