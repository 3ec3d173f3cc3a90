// The networks that a process can use, and the choice of one for each communicator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/dl.h"
#include "base/settings/params.h"
#include "plugin/network/collnet.h"
#include "plugin/network/collnet_lack.h"
#include "plugin/network/net.h"
#include "plugin/network/net_plugin.h"

namespace tutti::plugin {

class NetRegistry;

/// A library's tables, each with devices of its own.
enum class NetPart : std::uint8_t { Net, CollNet };

/// One communicator's network. Destroying it gives the network back: its context, and its library once nobody uses it.
/// All connections must be closed by then.
class NetLease {
 public:
  NetLease(NetRegistry& registry, std::size_t entry) : registry_(registry), entry_(entry) {}
  NetLease(const NetLease&) = delete;
  NetLease& operator=(const NetLease&) = delete;
  ~NetLease();

  Net& net() { return *net_; }
  /// Null: the library has none, or it cannot be used.
  CollNet* collNet() { return collNet_.get(); }
  const CollNetLack& collNetLack() const { return lack_; }
  /// The one that is meant; there must be a collNet to ask for it.
  NetDevices& part(NetPart which) { return which == NetPart::Net ? static_cast<NetDevices&>(*net_) : *collNet_; }
  /// Lets `make` fuse devices of a part, but only for the first communicator since the library was loaded: what it made
  /// stays for the later ones. Returns how many devices there were before anything was fused; those behind them are
  /// fused, by this part or, where a library keeps one list for both, by the other. Errors: what `make` says, which the
  /// next communicator will ask again.
  Result<int> fuseOnce(NetPart which, const std::function<Status(NetDevices& devices, int physical)>& make);

 private:
  friend class NetRegistry;

  NetRegistry& registry_;
  const std::size_t entry_;
  std::unique_ptr<Net> net_;
  std::unique_ptr<CollNet> collNet_;
  CollNetLack lack_;
  bool counted_ = false;  ///< among the users of its entry
};

/// What became of one network when one was chosen.
struct NetVerdict {
  enum class Outcome : std::uint8_t {
    Chosen,
    Refused,   ///< `why` says why
    NotAsked,  ///< one before it was chosen
  };
  std::string title;  ///< the library as it was asked for, or the built-in network's name
  std::string name;   ///< of the network; "": its library is not open
  bool external = false;
  Outcome outcome = Outcome::NotAsked;
  std::string why;
};

/// A choice, and how it came about: all networks, in their order.
struct NetChoice {
  std::unique_ptr<NetLease> lease;  ///< null: none can be used
  std::vector<NetVerdict> verdicts;
};

/// The networks in the order in which they are tried: those of the listed libraries, then the built-in ones. Must
/// outlive its leases. Any thread: choosing and giving back exclude each other, and so do the plugins' init and
/// finalize.
class NetRegistry {
 public:
  /// Libraries are opened when a communicator first needs a network. `named`: the user has listed them, and hears by a
  /// warning of each that cannot be loaded.
  NetRegistry(const Params::Misc& settings, bool named, std::vector<std::unique_ptr<NetSource>> builtIn);
  ~NetRegistry();
  NetRegistry(const NetRegistry&) = delete;
  NetRegistry& operator=(const NetRegistry&) = delete;

  /// The first network that can be used and has the name `wanted`, in any case ("": any). Once a library's network is
  /// taken, those of other libraries are no longer offered.
  NetChoice choose(std::string_view wanted, const NetOpening& opening);
  /// The same where there must be one. Fails with ncclInvalidUsage and what is wrong with each.
  Result<std::unique_ptr<NetLease>> assign(std::string_view wanted, const NetOpening& opening);

 private:
  friend class NetLease;
  struct Entry;

  void load(Entry& entry);
  void refuseLibrary(Entry& entry, std::string why);
  void unload(Entry& entry);
  /// What is wrong with an entry; "": nothing, and the lease has its network.
  std::string tryOut(std::string_view wanted, Entry& entry, const NetOpening& opening, NetLease& lease);
  void take(Entry& entry, NetLease& lease);
  bool tryEntry(Entry& entry, const NetOpening& opening, NetLease& lease);
  bool tryBuiltIn(Entry& entry, const NetOpening& opening, NetLease& lease);
  void openCollNet(Entry& entry, const NetOpening& opening, NetLease& lease);
  void disableOthers(const Entry& chosen);
  void giveBack(NetLease& lease);

  std::mutex mutex_;
  const bool keepLoaded_;
  const bool named_;
  std::vector<std::unique_ptr<Entry>> entries_;  // guarded by mutex_
};

}  // namespace tutti::plugin
