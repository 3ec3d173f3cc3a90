#include "plugin/profiler.h"

#include <string_view>
#include <utility>

#include "base/log.h"
#include "base/never_destroyed.h"
#include "base/result_name.h"
#include "base/threads/activity.h"
#include "plugin/event_mask.h"
#include "plugin/kind.h"
#include "plugin/plugin_calls.h"
#include "plugin/plugin_log.h"
#include "plugin/profiler_versions.h"
#include "plugin/single.h"

namespace tutti::plugin {

int eventMaskOfProcess = 0;

namespace {

/// Nobody listens once the plugin is gone.
class MaskedPlugin final : public ProfilerPlugin {
 public:
  explicit MaskedPlugin(std::unique_ptr<ProfilerPlugin> plugin) : plugin_(std::move(plugin)) {}
  ~MaskedPlugin() override { std::atomic_ref<int>(eventMaskOfProcess).store(0, std::memory_order_relaxed); }

  const char* name() const override { return plugin_->name(); }
  std::string describe() const override { return plugin_->describe(); }
  ncclResult_t init(void** context, int* mask, const ProfiledComm& comm) override {
    return plugin_->init(context, mask, comm);
  }
  void* start(void* context, Event& event) override { return plugin_->start(context, event); }
  void stop(void* handle) override { plugin_->stop(handle); }
  void state(void* handle, EventState state, EventStateArgs* args) override { plugin_->state(handle, state, args); }
  void finalize(void* context) override { plugin_->finalize(context); }

 private:
  const std::unique_ptr<ProfilerPlugin> plugin_;
};

std::unique_ptr<ProfilerPlugin> findMasked(const DlLibrary& library, const std::string& path) {
  std::unique_ptr<ProfilerPlugin> found = findProfiler(library, path);
  if (found == nullptr) return nullptr;
  return std::make_unique<MaskedPlugin>(std::move(found));
}

SinglePlugin<ProfilerPlugin>& profilerOfProcess() {
  static NeverDestroyed<SinglePlugin<ProfilerPlugin>> profiler(kProfilerPlugins, findMasked);
  return profiler.get();
}

class PluginSink final : public EventSink {
 public:
  PluginSink(std::shared_ptr<ProfilerPlugin> plugin, void* context) : plugin_(std::move(plugin)), context_(context) {}
  PluginSink(const PluginSink&) = delete;
  PluginSink& operator=(const PluginSink&) = delete;
  ~PluginSink() override {
    if (context_ != nullptr) plugin_->finalize(context_);
  }

  void* start(Event& event) override { return plugin_->start(context_, event); }
  void stop(void* handle) override {
    if (handle != nullptr) plugin_->stop(handle);
  }
  void state(void* handle, EventState state, EventStateArgs* args) override {
    if (handle != nullptr) plugin_->state(handle, state, args);
  }

 private:
  const std::shared_ptr<ProfilerPlugin> plugin_;
  void* const context_;
};

/// Meanwhile others can see that this thread is in there (ActivitySlot).
ncclResult_t notedInit(ProfilerPlugin& plugin, void** context, const ProfiledComm& comm) {
  const CallNote note("init", lastingText(plugin.describe()), kNoDevice);
  return plugin.init(context, &eventMaskOfProcess, comm);
}

void logMask(int mask) {
  constexpr std::array<std::string_view, 15> kNames{"Group",     "Coll",         "P2p",       "ProxyOp",  "ProxyStep",
                                                    "ProxyCtrl", "KernelCh",     "NetPlugin", "GroupApi", "CollApi",
                                                    "P2pApi",    "KernelLaunch", "CeColl",    "CeSync",   "CeBatch"};
  if (mask == 0) return;
  std::string enabled;
  for (std::size_t bit = 0; bit < kNames.size(); ++bit) {
    if ((static_cast<unsigned>(mask) >> bit & 1U) == 0) continue;
    enabled += ' ';
    enabled += kNames[bit];
  }
  info(kInit, "Profiler event mask: {:#x} ({}) - Enabled:{}", static_cast<unsigned>(mask), mask, enabled);
}

}  // namespace

void NetEventParent::set(std::shared_ptr<EventSink> sink, void* step, int rank) {
  const std::lock_guard lock(mutex_);
  sink_ = std::move(sink);
  step_ = step;
  rank_ = rank;
}

void NetEventParent::clear() {
  const std::lock_guard lock(mutex_);
  sink_.reset();
}

void* NetEventParent::start(std::int64_t pluginId, void* data) {
  const std::lock_guard lock(mutex_);
  if (sink_ == nullptr) return nullptr;
  Event event{};
  event.type = ncclProfileNetPlugin;
  event.parentObj = step_;
  event.rank = rank_;
  event.netPlugin = {pluginId, data};
  return sink_->start(event);
}

/// What has begun is told of although its communicator may be gone: the interface names none.
ncclResult_t netEvent(void** eventHandle, int type, void* parent, std::int64_t pluginId, void* data) {
  if (eventHandle == nullptr) return ncclSuccess;
  if (type == ncclProfilerNetEventStart) {
    *eventHandle = parent == nullptr ? nullptr : static_cast<NetEventParent*>(parent)->start(pluginId, data);
    return ncclSuccess;
  }
  const std::shared_ptr<ProfilerPlugin> plugin = profilerOfProcess().current();
  if (plugin == nullptr || *eventHandle == nullptr) return ncclSuccess;
  EventStateArgs args{};
  args.netPlugin.data = data;
  if (type != ncclProfilerNetEventStop) plugin->state(*eventHandle, ncclProfilerNetPluginUpdate, &args);
  if (type != ncclProfilerNetEventUpdate) plugin->stop(*eventHandle);
  return ncclSuccess;
}

std::shared_ptr<EventSink> openProfiler(const std::string& setting, const ProfiledComm& comm) {
  std::shared_ptr<ProfilerPlugin> plugin = profilerOfProcess().take(setting);
  if (plugin == nullptr) return nullptr;
  const PluginIsOptional quiet;
  void* context = nullptr;
  const ncclResult_t code = notedInit(*plugin, &context, comm);
  if (code != ncclSuccess) {
    info(kInit, "Profiler init failed with error '{}': {}. Continue without profiler. It is the {}",
         static_cast<int>(code), resultName(code), plugin->describe());
    return nullptr;
  }
  logMask(eventMask());
  return std::make_shared<PluginSink>(std::move(plugin), context);
}

}  // namespace tutti::plugin
