// One connection between two processes of a job.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/socket/unproven.h"
#include "bootstrap/link/link.h"
#include "bootstrap/link/paced_listener.h"
#include "ras/network/messages.h"

namespace tutti::ras {

/// From the first packet on; never waits. Whoever owns it polls fd(), and calls advance() when something happens there.
/// Not thread-safe.
class PeerLink {
 public:
  /// Begins to connect to a process with that key.
  PeerLink(const Address& to, const bootstrap::Key& key);
  /// One that was let in; `key`: this process's own.
  PeerLink(bootstrap::Arrival arrival, const bootstrap::Key& key);

  /// -1 once it has ended, or where it could not begin.
  int fd() const;
  const Address& peer() const { return peer_; }
  /// With which keys in tables on it are sealed.
  const bootstrap::Key& key() const { return key_; }
  bool open() const { return link_ && link_->open() && !ended_; }
  bool ended() const { return ended_; }
  /// Why, in words.
  const std::string& why() const { return why_; }
  /// Nobody listens at the other end, or there is no way there.
  bool refused() const { return refused_; }
  bool wantsWrite() const { return !link_ || link_->wantsWrite(); }
  bool drained() const { return link_ && link_->drained(); }

  /// Goes on as far as it goes without waiting. What has come is in frames().
  void advance();
  std::vector<bootstrap::Frame> frames() { return std::exchange(frames_, {}); }
  /// Queued; goes out once the link is open.
  void send(Message message, Bytes payload);
  /// Nothing more will be sent.
  void finish();
  void close(std::string why);

 private:
  void connected();
  void end(std::string why, bool refused = false);

  Address peer_;
  bootstrap::Key key_;
  Socket connecting_;
  std::unique_ptr<bootstrap::Link> link_;
  UnprovenPlaces::Place place_;
  std::vector<bootstrap::Frame> frames_;
  std::vector<std::pair<Message, Bytes>> early_;  ///< before there is a link
  bool ended_ = false;
  bool refused_ = false;
  std::string why_;
};

}  // namespace tutti::ras
