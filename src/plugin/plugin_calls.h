// What the adapters of all versions have in common: the words of their errors, and which connection is on which device.
#pragma once

#include <fmt/core.h>

#include <mutex>
#include <string>
#include <unordered_map>

#include "base/log.h"
#include "base/status.h"
#include "base/threads/activity.h"
#include "nccl_net.h"
#include "plugin/plugin_log.h"

namespace tutti::plugin {

/// A network of a library, as messages name it.
struct PluginIdentity {
  std::string name;  ///< the network's
  const char* kind;  ///< "net" or "collNet"
  int version;
  std::string library;  ///< path
};

inline constexpr int kNoDevice = -1;

/// The calls that one communicator makes of one network. Any thread.
class PluginCalls {
 public:
  explicit PluginCalls(const PluginIdentity& who);

  const PluginIdentity& who() const { return who_; }

  /// Makes one call; an error becomes a Status that names `call` and the device of `end`, an end of a connection, where
  /// known.
  template <class F>
  Status check(const char* call, const void* end, F&& function) {
    forgetPluginWarning();
    const ncclResult_t code = noted(call, kNoDevice, function);
    if (code == ncclSuccess) [[likely]]
      return {};
    return failed(code, call, deviceOf(end));
  }
  /// The same for calls that move data, whose errors are lines at INFO: a peer that leaves in peace closes its
  /// connections, too, and who has called tells of the others with what lastErrorText() says then.
  template <class F>
  Status checkStep(const char* call, const void* end, F&& function) {
    forgetPluginWarning();
    const ncclResult_t code = noted(call, kNoDevice, function);
    if (code == ncclSuccess) [[likely]]
      return {};
    return failedQuietly(code, call, deviceOf(end));
  }
  /// The same for calls that name a device.
  template <class F>
  Status checkDevice(const char* call, int device, F&& function) {
    forgetPluginWarning();
    const ncclResult_t code = noted(call, device, function);
    if (code == ncclSuccess) [[likely]]
      return {};
    return failed(code, call, device);
  }

  /// Runs `function`, which calls `call`; meanwhile others can see that this thread is in there (ActivitySlot).
  template <class F>
  auto noted(const char* call, int device, F&& function) const {
    const CallNote note(call, place_, device);
    return function();
  }

  /// Errors that the adapter finds itself.
  Status refuse(ncclResult_t code, const char* call, int device, const std::string& why) const;
  /// "network X (net v8 of /lib/x.so), device 0: isend failed with ncclRemoteError: its words". Takes the warning.
  std::string describe(ncclResult_t code, const char* call, int device) const;
  /// The same start: "network X (net v8 of /lib/x.so), device 0".
  std::string place(int device) const;

  void remember(const void* end, int device);
  void forget(const void* end);
  /// The device of an end; where that is unknown (requests), the only one in use; else kNoDevice.
  int deviceOf(const void* end) const;

 private:
  Status failed(ncclResult_t code, const char* call, int device) const;
  Status failedQuietly(ncclResult_t code, const char* call, int device) const;

  PluginIdentity who_;
  const char* const place_;  ///< place() without a device
  mutable std::mutex mutex_;
  std::unordered_map<const void*, int> devices_;  // guarded by mutex_
};

/// The text in memory that is never freed, for CallNote: one for all that are equal. Any thread.
const char* lastingText(const std::string& text);

/// What callers get to see of a plugin's code: one of the errors of the API, whatever it returned.
ncclResult_t errorCode(ncclResult_t returned);

}  // namespace tutti::plugin
