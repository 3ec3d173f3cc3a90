// Networks of loaded libraries, of any version of the net interface.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/dl.h"
#include "plugin/network/net.h"

namespace tutti::plugin {

/// How beginning to use a network ended: a network, or why there is none. Born without a log line, for another network
/// may do as well.
template <class Network>
struct NetAttempt {
  std::unique_ptr<Network> net;
  ncclResult_t code = ncclSuccess;
  std::string why;
};

/// The network of a library. Must outlive the Nets that it opened; the library must outlive it. Any thread.
class LoadedNet : public NetSource {
 public:
  virtual int version() const = 0;
  /// Initialises the network for a communicator, and finds out whether it can be used: it has all functions, at least
  /// one device, and the first device is one that the host drives.
  virtual NetAttempt<Net> attempt(const NetOpening& opening) = 0;
  /// The same, where a failure is an error.
  Result<std::unique_ptr<Net>> open(const NetOpening& opening) final;
};

/// The newest net interface of a library; null: it has none. `path` stands in messages. Prints what it finds.
std::unique_ptr<LoadedNet> findNet(const DlLibrary& library, const std::string& path);

}  // namespace tutti::plugin
