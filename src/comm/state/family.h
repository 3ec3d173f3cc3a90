// Communicators that share connections: a parent whose configuration says so, its children, theirs, and so on.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

struct ncclComm;

namespace tutti::gpu {
class MemoryLedger;
enum class MemoryClass : std::uint8_t;
}  // namespace tutti::gpu
namespace tutti::net {
struct NetCommons;
}

namespace tutti::comm {

class FamilyPeers;
class FamilyTurn;
class LaunchOrder;
class SharedConnections;
struct PooledDevice;

/// What one rank's communicators of a family have in common. It lives as long as any of them, and the graphs of any. As
/// all ranks issue the family's operations in the same order, calls on different threads take turns in the order in
/// which they came. Any thread.
class Family : public std::enable_shared_from_this<Family> {
 public:
  /// Of a communicator that children may share with: the first of its family. `device` is its device.
  static Result<std::shared_ptr<Family>> found(std::shared_ptr<PooledDevice> device, int place);
  Family(const Family&) = delete;
  ~Family();

  /// This rank, as the family numbers ranks: as its first communicator did.
  int place() const { return place_; }
  const PooledDevice* device() const { return device_.get(); }
  const std::shared_ptr<SharedConnections>& connections() const { return connections_; }
  const std::shared_ptr<LaunchOrder>& order() const { return order_; }
  /// Counts the connections, whichever member opened them.
  const std::shared_ptr<gpu::MemoryLedger>& memory() const { return memory_; }
  /// Who is gone from all members.
  const std::shared_ptr<FamilyPeers>& peers() const { return peers_; }
  /// What connections over a network have in common; of the first member's init, then constant.
  const std::shared_ptr<net::NetCommons>& netCommons() const { return netCommons_; }
  void setNetCommons(std::shared_ptr<net::NetCommons> commons) { netCommons_ = std::move(commons); }

  /// From now on the failure of a member that has used the connections is one of all members. ncclRemoteError if that
  /// has happened by now.
  Status join(ncclComm& comm);
  /// The member has used them, or is about to.
  void noteUse(const ncclComm& comm);
  /// Its application ends it. Whether nobody is left who could use the connections, except graphs.
  bool leave(const ncclComm& comm);
  /// Whether all peers of members that have left were heard of to the last: what they take they have taken, or will.
  bool complete() const;
  /// It is about to be gone, and its graphs are.
  void forget(const ncclComm& comm);
  /// Whether there are members beside `comm` that nobody has ended.
  bool hasOthers(const ncclComm& comm) const;
  /// The member is about to be freed: whether the connections stay. Of several at the same time one is told that they
  /// do not.
  bool outlives(const ncclComm& comm);
  /// Whether no other member is left, in whatever state.
  bool isAlone(const ncclComm& comm) const;
  /// Whether graphs have operations of members that have ended.
  bool graphsKeepOthers(const ncclComm& comm) const;
  /// Whether it is the first of those that nobody has ended: the connections' memory is told as its own.
  bool isEldest(const ncclComm& comm) const;
  /// Whether a member has given up the connections for all.
  bool failed() const;
  /// Waits for a thread that tells the members, and their peers, of a failure at this moment. Any thread.
  void awaitSpread() const;

  /// One turn in each of these families, all at once: two that wait for each other's would wait for ever.
  static void takeTurns(std::span<const std::shared_ptr<Family>> families, std::vector<FamilyTurn>& turns);

 private:
  friend class FamilyTurn;
  struct Member {
    ncclComm* comm;
    bool used = false;
    bool left = false;
    bool going = false;
  };
  Family(std::shared_ptr<PooledDevice> device, int place, std::shared_ptr<LaunchOrder> order);
  Status takeCare();
  Member* find(const ncclComm& comm);
  void spread(const ncclComm& from, Status why);

  std::shared_ptr<PooledDevice> device_;  ///< outlives the rest
  const int place_;
  const std::shared_ptr<LaunchOrder> order_;
  const std::shared_ptr<gpu::MemoryLedger> memory_;
  const std::shared_ptr<SharedConnections> connections_;
  const std::shared_ptr<FamilyPeers> peers_;
  std::shared_ptr<net::NetCommons> netCommons_;
  mutable std::mutex mutex_;  ///< members_, lostPeers_
  std::vector<Member> members_;
  bool lostPeers_ = false;
  std::atomic<bool> failed_{false};
  mutable std::mutex turnMutex_;  ///< turns_
  mutable std::condition_variable turned_;
  std::list<int> turns_;
};

/// A place in the order of a family's calls; given back when it is destroyed.
class FamilyTurn {
 public:
  FamilyTurn() = default;
  FamilyTurn(FamilyTurn&& other) noexcept : family_(std::move(other.family_)), place_(other.place_) {}
  FamilyTurn& operator=(FamilyTurn&& other) noexcept;
  ~FamilyTurn() { end(); }
  /// Whether it has come.
  bool hasCome() const;
  /// Waits until it has, or there is nothing left to wait for.
  void await(const std::function<bool()>& givenUp) const;
  void end();

 private:
  friend class Family;
  std::shared_ptr<Family> family_;
  std::list<int>::iterator place_;
};

/// Bytes of device memory that the communicator has, or that its family has where it is the eldest.
std::size_t deviceMemory(const ncclComm& comm, gpu::MemoryClass kind);

}  // namespace tutti::comm
