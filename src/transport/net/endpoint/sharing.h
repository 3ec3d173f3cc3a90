// Network connections that several connections of ours share: those for messages between one pair of ranks, on several
// channels, over one pair of the network's devices.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "transport/common/ranks.h"
#include "transport/net/endpoint/connection.h"
#include "transport/net/lane/shared_slots.h"
#include "transport/net/recv/multi_recv.h"
#include "transport/net/recv/recv_sequence.h"

namespace tutti::net {

/// What an end tells the other about sharing. Trivially copyable.
struct SharingOffer {
  std::int16_t device = 0;    ///< of the network, at the end that speaks
  std::int16_t maxRecvs = 0;  ///< receives that this device takes in one; 0: this end shares nothing
};

/// Between whom one of them is, as an end sees it.
struct JoinKey {
  int peer = -1;  ///< in the numbering of the family, if there is one
  device::Direction direction = device::Direction::Send;
  int device = 0;
  int peerDevice = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): what is compared to 0 there is written by the compiler
  friend auto operator<=>(const JoinKey&, const JoinKey&) = default;
};

/// One of them. The first end to come brings the network connection; it is closed with the last end.
struct SharedConnection {
  std::shared_ptr<NetConnection> connection;
  int ends = 0;
  bool complete = false;              ///< it is being used: no further end may come
  std::shared_ptr<MultiRecv> groups;  ///< a receiver's
  std::optional<FailedCall> failure;  ///< a sender's: the network is not asked again. The progress engine's
};

/// Those of a communicator, or of a family; used by the thread that connects one, of which there is one at a time.
///
/// Both sides of a link go through its channels in ascending order, and through all of them before the first end is
/// used (comm/connect/connect.h): so they come to the same groups without a word.
class ConnectionSharing {
 public:
  /// What an end shares, at most `most` of them; its own `connection` where it is the first.
  std::shared_ptr<SharedConnection> enter(const JoinKey& key, int most,
                                          const std::shared_ptr<NetConnection>& connection);
  /// The order of what this peer sends, on all channels.
  std::shared_ptr<RecvSequence> turnsOf(int peer);

 private:
  std::map<JoinKey, std::weak_ptr<SharedConnection>> connections_;
  std::map<int, std::weak_ptr<RecvSequence>> turns_;
};

/// What the ends of one communicator have in common, or of a family of them that use their connections in turn: then a
/// kernel of any of them finds all messages of a channel in one ring of slots, and those of a peer in one order.
/// Members as they say.
struct NetCommons {
  SharedPools pools;
  ConnectionSharing joins;
};

}  // namespace tutti::net
