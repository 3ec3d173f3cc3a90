// Who in this process uses which unique id: a root ends with the last local user of its id whose init failed.
#pragma once

#include <memory>
#include <vector>

#include "bootstrap/link/crypto.h"
#include "bootstrap/link/wire.h"

namespace tutti::bootstrap {

struct UniqueId;

/// A root's thread, as others of its process see it. Any thread; nothing waits.
class RunningRoot {
 public:
  virtual ~RunningRoot() = default;
  /// A rank of this process has failed: the root tells all who are there and who still come.
  virtual void tell(const Notice& failure) = 0;
  /// Nobody of this process needs it any more: it stays a few seconds for those who come late, and ends.
  virtual void leave() = 0;
  /// It ends now.
  virtual void end() = 0;
  /// The process ends in order: the root tells those who wait, and ends.
  virtual void endWithProcess() = 0;
  /// Its last words are said.
  virtual bool hasEnded() const = 0;
};

/// From now on the uses of the id with this secret know of its root.
void registerRoot(const Key& secret, const std::shared_ptr<RunningRoot>& root);

/// What one join means to the roots of its process. Ends as a success, or as a failure of which the roots tell all
/// others. Several threads may have uses of one id; one of them ends a use.
class IdUse {
 public:
  explicit IdUse(const std::vector<UniqueId>& ids);
  IdUse(const IdUse&) = delete;
  IdUse& operator=(const IdUse&) = delete;
  ~IdUse() { release(); }

  /// Adds a root that this join has started itself.
  void own(std::shared_ptr<RunningRoot> root);
  /// The join has failed.
  void failed(const Notice& why);
  /// The use is over, however it went. Idempotent.
  void release();

 private:
  std::vector<Key> secrets_;
  std::vector<std::shared_ptr<RunningRoot>> owned_;
  bool failed_ = false;
};

}  // namespace tutti::bootstrap
