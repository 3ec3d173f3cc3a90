// A rank that other ranks of its host send through: listens for them at a local socket and keeps what they ordered.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/socket/unproven.h"
#include "base/status.h"
#include "base/threads/thread.h"
#include "base/threads/waker.h"
#include "topo/machine/peer_info.h"
#include "transport/common/local_socket.h"
#include "transport/net/pxn/wire.h"

namespace tutti::gpu {
class Device;
}
namespace tutti::plugin {
class Net;
}
namespace tutti::proxy {
class ProgressEngine;
}

namespace tutti::net::pxn {

struct ServiceSetup {
  std::shared_ptr<const void> owner;  ///< keeps `net` and `device`
  plugin::Net* net = nullptr;
  const gpu::Device* device = nullptr;
  std::shared_ptr<proxy::ProgressEngine> engine;
  std::vector<topo::PeerInfo> peers;  ///< of all ranks
  UnprovenPlaces* places = &UnprovenPlaces::ofProcess();
  int rank = 0;
  Secret secret{};
};

/// Owns a listener, a thread that sleeps in poll, and a group of the engine; none of them takes processor time while
/// nobody sends. Independent of the communicator that started it, for those who send through it may leave later. A line
/// on which no pass has been shown by the time it is let in stays for kUnprovenTime at most, and only where a place is
/// free; else it is closed without a word, and who belongs here comes again (endpoint.h). Any thread.
class RelayService {
 public:
  /// Errors: ncclSystemError with the system's words.
  static Result<std::shared_ptr<RelayService>> start(ServiceSetup setup);
  RelayService(const RelayService&) = delete;
  /// Ends all connections, whoever uses them.
  ~RelayService();

  /// Takes no further senders, and ends with the last one that it has, by itself if nobody owns it any more.
  static void retire(std::shared_ptr<RelayService> service);
  /// After retire(): nobody sends through it any more.
  bool finished() const { return finished_.load(std::memory_order_acquire); }
  /// Whether anybody sends through it.
  bool serves() const;
  /// See PxnConnections::underWay().
  std::vector<std::string> underWay() const;

 private:
  struct Senders;
  explicit RelayService(ServiceSetup setup);
  Status open();
  void run();
  /// Whether the thread has come to its end.
  bool leave();
  int patience() const;
  void serve();
  void acceptAll();

  ServiceSetup setup_;
  std::unique_ptr<Senders> senders_;
  Waker waker_;
  transport::LocalListener listener_;  ///< the thread's, once it runs
  std::mutex mutex_;
  bool stopping_ = false;
  bool retired_ = false;
  std::shared_ptr<RelayService> self_;  ///< while nobody else need own it
  std::atomic<bool> finished_{false};
  Thread thread_;
};

}  // namespace tutti::net::pxn
