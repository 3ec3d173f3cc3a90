#include "plugin/network/registry.h"

#include <fmt/core.h>

#include <optional>
#include <utility>

#include "base/log.h"
#include "plugin/discovery.h"
#include "plugin/plugin_log.h"
#include "plugin/single.h"

namespace tutti::plugin {

/// A row of the table. Guarded by the registry's mutex.
struct NetRegistry::Entry {
  enum class State : std::uint8_t {
    NotLoaded,   ///< its library is not open
    LoadFailed,  ///< for ever
    Ready,
    Disabled,  ///< for ever
  };

  /// Of one part, since the library was loaded.
  struct Fusion {
    std::optional<int> physical;  ///< devices before any were fused; empty: not counted
    bool done = false;            ///< what should be fused has been

    Status count(NetDevices& part) {
      if (physical) return {};
      ASSIGN(physical, part.devices());
      return {};
    }
  };

  std::string title;  ///< in messages: the library as it was asked for, or the built-in network's name
  State state = State::Ready;
  std::string why;  ///< of LoadFailed and Disabled
  Fusion netFusion;
  Fusion collNetFusion;
  bool opened = false;  ///< a communicator has used it since it was loaded
  int users = 0;
  std::unique_ptr<NetSource> builtIn;  ///< null: a library's
  DlLibrary library;
  std::unique_ptr<LoadedNet> net;
  std::unique_ptr<LoadedCollNet> collNet;
  CollNetLack collNetLack;  ///< found out by the communicator that began it first

  bool external() const { return builtIn == nullptr; }
  std::string_view name() const { return external() ? net->name() : builtIn->name(); }
  void close(State how, std::string reason) {
    state = how;
    why = std::move(reason);
  }
};

NetLease::~NetLease() {
  if (net_ != nullptr) registry_.giveBack(*this);
}

Result<int> NetLease::fuseOnce(NetPart which, const std::function<Status(NetDevices& devices, int physical)>& make) {
  const std::lock_guard lock(registry_.mutex_);
  NetRegistry::Entry& entry = *registry_.entries_[entry_];
  const bool ofNet = which == NetPart::Net;
  // Both before either fuses: what one makes may stand in the list of the other as well.
  if (ofNet && collNet_ != nullptr) {
    const PluginIsOptional quiet;
    entry.collNetFusion.count(*collNet_).ignore();  // it will say so when it is asked
  }
  NetRegistry::Entry::Fusion& fusion = ofNet ? entry.netFusion : entry.collNetFusion;
  TRY(fusion.count(part(which)));
  if (!fusion.done) TRY(make(part(which), *fusion.physical));
  fusion.done = true;
  return *fusion.physical;
}

NetRegistry::NetRegistry(const Params::Misc& settings, bool named, std::vector<std::unique_ptr<NetSource>> builtIn)
    : keepLoaded_(settings.netPluginRefCount > 0), named_(named) {
  for (std::string& name : parsePluginList(settings.netPlugin)) {
    auto& entry = *entries_.emplace_back(std::make_unique<Entry>());
    entry.title = std::move(name);
    entry.state = Entry::State::NotLoaded;
  }
  for (auto& source : builtIn) {
    auto& entry = *entries_.emplace_back(std::make_unique<Entry>());
    entry.title = source->name();
    entry.builtIn = std::move(source);
  }
}

NetRegistry::~NetRegistry() = default;

/// Once for each library: it is not tried again.
void NetRegistry::refuseLibrary(Entry& entry, std::string why) {
  if (named_) {
    warn("{}/Plugin: {} names {}, which cannot be used: {}. The process goes on with the other networks",
         kNetPlugins.label, kNetPlugins.setting, entry.title, why);
  }
  entry.close(Entry::State::LoadFailed, std::move(why));
}

void NetRegistry::load(Entry& entry) {
  OpenedPlugin opened = openPlugin(kNetPlugins, entry.title);
  if (!opened.library.valid()) return refuseLibrary(entry, opened.why);
  entry.library = std::move(opened.library);
  entry.net = findNet(entry.library, opened.path);
  if (entry.net == nullptr) {
    info(kInit | kNet, "External network plugin {} is unsupported", opened.path);
    entry.library = {};
    return refuseLibrary(entry, fmt::format("{} exports no ncclNetPlugin_v6 to _v12", opened.path));
  }
  info(kInit | kNet, "Successfully loaded external network plugin {}", opened.path);
  rememberNetLibrary(opened.path);
  entry.collNet = findCollNet(entry.library, opened.path);
  entry.collNetLack = {};
  if (entry.collNet == nullptr) entry.collNetLack.why = opened.path + " exports no ncclCollNetPlugin_v6 to _v12";
  entry.state = Entry::State::Ready;
  entry.opened = false;
  entry.netFusion = {};
  entry.collNetFusion = {};
}

void NetRegistry::unload(Entry& entry) {
  info(kDestroy | kNet, "Unloading plugin {}", entry.title);
  entry.net.reset();
  entry.collNet.reset();
  entry.library = {};
  if (entry.state == Entry::State::Ready) entry.state = Entry::State::NotLoaded;
}

void NetRegistry::openCollNet(Entry& entry, const NetOpening& opening, NetLease& lease) {
  if (entry.collNetLack.why.empty()) {
    const PluginIsOptional quiet;
    NetAttempt<CollNet> attempt = entry.collNet->attempt(opening);
    if (attempt.net == nullptr) {
      info(kInit | kNet, "collNet of plugin {} is not used: {}", entry.collNet->name(), attempt.why);
      entry.collNetLack = {attempt.why, true};  // Older communicators may be using it.
    }
    lease.collNet_ = std::move(attempt.net);
  }
  lease.lack_ = entry.collNetLack;
}

bool NetRegistry::tryBuiltIn(Entry& entry, const NetOpening& opening, NetLease& lease) {
  auto net = entry.builtIn->open(opening);
  if (!net.ok()) {
    entry.why = lastErrorText();
    info(kInit | kNet, "Failed to initialize NET plugin {}: {}", entry.name(), entry.why);
    return false;
  }
  lease.net_ = std::move(net).value();
  lease.lack_.why = fmt::format("the network {} is built in, and does no collectives", entry.name());
  const auto devices = lease.net_->devices();
  if (devices.ok() && devices.value() > 0) return true;
  entry.why = devices.ok() ? "it has no devices" : lastErrorText();
  info(kInit | kNet, "Failed to initialize NET plugin {}: {}", entry.name(), entry.why);
  lease.net_.reset();
  return false;
}

bool NetRegistry::tryEntry(Entry& entry, const NetOpening& opening, NetLease& lease) {
  if (!entry.external()) return tryBuiltIn(entry, opening, lease);
  NetAttempt<Net> attempt = entry.net->attempt(opening);
  if (attempt.net == nullptr) {
    info(kInit | kNet, "Failed to initialize NET plugin {}: {}", entry.name(), attempt.why);
    entry.close(Entry::State::Disabled, attempt.why);
    return false;
  }
  lease.net_ = std::move(attempt.net);
  openCollNet(entry, opening, lease);
  return true;
}

void NetRegistry::disableOthers(const Entry& chosen) {
  std::string others;
  for (const auto& entry : entries_) {
    const bool offered = entry->state == Entry::State::NotLoaded || entry->state == Entry::State::Ready;
    if (entry.get() == &chosen || !entry->external() || !offered) continue;
    others += (others.empty() ? "" : ", ") + entry->title;
    entry->close(Entry::State::Disabled, fmt::format("the network of {} was chosen before", chosen.title));
  }
  if (!others.empty()) info(kInit | kNet, "Disabling external plugins: {}", others);
}

std::string NetRegistry::tryOut(std::string_view wanted, Entry& entry, const NetOpening& opening, NetLease& lease) {
  if (entry.state == Entry::State::NotLoaded) load(entry);
  if (entry.state != Entry::State::Ready) return entry.why;
  if (!wanted.empty() && !equalInAnyCase(wanted, entry.name())) {
    return fmt::format("its network is {}, wanted is {}", entry.name(), wanted);
  }
  return tryEntry(entry, opening, lease) ? std::string() : entry.why;
}

void NetRegistry::take(Entry& entry, NetLease& lease) {
  ++entry.users;
  lease.counted_ = true;
  if (!entry.opened) info(kInit | kNet, "Initialized NET plugin {}", entry.name());
  info(kInit | kNet, "Assigned NET plugin {} to comm", entry.name());
  entry.opened = true;
  if (entry.external()) disableOthers(entry);
}

NetChoice NetRegistry::choose(std::string_view wanted, const NetOpening& opening) {
  using Outcome = NetVerdict::Outcome;
  NetChoice choice;
  std::unique_ptr<NetLease> lease;
  // Let go of before any lease where something throws: a lease that goes needs the lock itself.
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = *entries_[i];
    NetVerdict verdict{.title = entry.title, .external = entry.external()};
    if (choice.lease == nullptr) {
      lease = std::make_unique<NetLease>(*this, i);
      verdict.why = tryOut(wanted, entry, opening, *lease);
      verdict.outcome = lease->net_ != nullptr ? Outcome::Chosen : Outcome::Refused;
      if (lease->net_ != nullptr) {
        take(entry, *lease);
        choice.lease = std::move(lease);
      }
    }
    if (!entry.external() || entry.net != nullptr) verdict.name = entry.name();
    choice.verdicts.push_back(std::move(verdict));
  }
  return choice;
}

Result<std::unique_ptr<NetLease>> NetRegistry::assign(std::string_view wanted, const NetOpening& opening) {
  NetChoice choice = choose(wanted, opening);
  if (choice.lease != nullptr) return std::move(choice.lease);
  std::string reasons;
  for (const NetVerdict& verdict : choice.verdicts) {
    reasons += fmt::format("{} {}: {}", reasons.empty() ? "" : ";", verdict.title, verdict.why);
  }
  return fail(ncclInvalidUsage,
              "Failed to initialize any NET plugin:{}. NCCL_NET_PLUGIN lists the libraries that are "
              "tried{}",
              reasons.empty() ? " there is none" : reasons,
              wanted.empty() ? "" : ", NCCL_NET or netName of the configuration says which network is wanted");
}

void NetRegistry::giveBack(NetLease& lease) {
  const std::lock_guard lock(mutex_);
  lease.net_.reset();
  lease.collNet_.reset();
  Entry& entry = *entries_[lease.entry_];
  if (lease.counted_) --entry.users;
  if (entry.users == 0 && entry.external() && !keepLoaded_) unload(entry);
}

}  // namespace tutti::plugin
