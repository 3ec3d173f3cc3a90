// The switch as a thread of the plugin, for users who have started none: node 0's process has it. Its address travels
// in the listen handles, so that the other nodes find it.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "switch.h"

namespace switch_collnet {

/// Nobody knows at listen() which node it will be. So every process has a socket for a switch, and the one that turns
/// out to have node 0 begins to serve. It is kept by the listeners and connections of the process, and ends with the
/// last of them.
class OwnSwitch {
 public:
  /// The one of this process. Null: `why` says what is wrong. Any thread.
  static std::shared_ptr<OwnSwitch> get(Address host, std::string& why);
  /// For get().
  OwnSwitch(Address address, Fd listener) : address_(address), listener_(std::move(listener)) {}
  /// Waits for results that are ready to leave; two seconds at most.
  ~OwnSwitch();

  const Address& address() const { return address_; }
  /// Begins to serve, if it does not yet. Any thread.
  void serve(const Faults& faults);

 private:
  const Address address_;
  std::mutex mutex_;
  Fd listener_;
  std::unique_ptr<Switch> switch_;
  std::thread thread_;
};

}  // namespace switch_collnet
