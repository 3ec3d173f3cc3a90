#include "comm/state/lost_peer.h"

#include "base/log.h"

namespace tutti::comm {

Status LostPeer::raiseLocked() {
  if (!loss_ || abort_.raised()) return abort_.status();
  const Status why = fail(loss_->why.code(), "{}", loss_->text);
  abort_.raise(why, loss_->text, loss_->text);
  return abort_.status();
}

void LostPeer::hear(Status why, std::string text, bool corrects) {
  const std::lock_guard lock(mutex_);
  if (abort_.raised()) {
    if (!corrects) return;
    warn("{}", text);
    return abort_.correct(std::move(text));
  }
  if (loss_ && !corrects) return;
  loss_ = {why, std::move(text)};
  heard_.store(true);
  if (waits_ > 0) {
    raiseLocked().ignore();
  } else {
    info(kBootstrap, "{}; nothing here waits for it", loss_->text);
  }
}

Status LostPeer::loss() const {
  const std::lock_guard lock(mutex_);
  return loss_ ? loss_->why : Status();
}

Status LostPeer::need() {
  const std::lock_guard lock(mutex_);
  return raiseLocked();
}

Status LostPeer::beginWait() {
  const std::lock_guard lock(mutex_);
  ++waits_;
  return raiseLocked();
}

void LostPeer::endWait() {
  const std::lock_guard lock(mutex_);
  --waits_;
}

}  // namespace tutti::comm
