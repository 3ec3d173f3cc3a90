// Two ends of the built-in network in one process, over loopback.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "support/until.h"
#include "transport/net/tcp/net.h"

namespace tutti::test {

using namespace std::chrono_literals;

inline Params loopbackParams() {
  Params params;
  params.sockets.ifname = "=lo";
  params.sockets.family = "AF_INET";
  params.sockets.retryCount = 2;
  params.sockets.retrySleepMs = 1;
  return params;
}

/// Settings of `threads` helpers with `sockets` each, and small pieces.
inline Params manySockets(int threads, int sockets) {
  Params params = loopbackParams();
  params.sockets.nThreads = threads;
  params.sockets.socketsPerThread = sockets;
  params.sockets.inlineBytes = 1000;
  params.sockets.minTaskSize = 5000;
  return params;
}

inline plugin::NetOpening opening(int secret = 7) {
  plugin::NetOpening one{.commId = 0x1234, .who = "a rank of a test"};
  one.secret.fill(static_cast<std::byte>(secret));
  return one;
}

/// One communicator's use of the network.
struct SocketSide {
  explicit SocketSide(const Params& params = loopbackParams(), const plugin::NetOpening& how = opening())
      : source(params) {
    auto opened = source.open(how);
    EXPECT_TRUE(opened.ok());
    if (opened.ok()) net = std::move(opened).value();
  }
  net::tcp::SocketNetSource source;
  std::unique_ptr<plugin::Net> net;
};

/// A connection; closes what is open. The sides live longer.
struct SocketPair {
  SocketPair(SocketSide& from, SocketSide& to) : sendNet(*from.net), recvNet(*to.net) {
    plugin::NetHandle handle{};
    auto listening = recvNet.listen(0, handle);
    EXPECT_TRUE(listening.ok());
    if (!listening.ok()) return;
    const bool connected = until([&] {
      if (sender == nullptr) {
        auto made = sendNet.connect(0, handle);
        if (!made.ok()) return true;
        sender = made.value();
      }
      if (receiver == nullptr) {
        auto made = recvNet.accept(listening.value());
        if (!made.ok()) return true;
        receiver = made.value();
      }
      return sender != nullptr && receiver != nullptr;
    });
    EXPECT_TRUE(connected && sender != nullptr && receiver != nullptr);
    EXPECT_TRUE(recvNet.closeListen(listening.value()).ok());
  }
  explicit SocketPair(SocketSide& side) : SocketPair(side, side) {}
  ~SocketPair() {
    closeSend();
    closeRecv();
  }
  void closeSend() {
    if (void* one = std::exchange(sender, nullptr)) {
      EXPECT_TRUE(sendNet.closeSend(one).ok());
    }
  }
  void closeRecv() {
    if (void* one = std::exchange(receiver, nullptr)) {
      EXPECT_TRUE(recvNet.closeRecv(one).ok());
    }
  }

  void* send(const void* data, std::size_t bytes) {
    auto request = sendNet.isend(sender, {.data = const_cast<void*>(data), .bytes = bytes});
    EXPECT_TRUE(request.ok());
    return request.ok() ? request.value() : nullptr;
  }
  void* recv(void* data, std::size_t bytes) {
    const plugin::NetBuffer buffer{.data = data, .bytes = bytes};
    auto request = recvNet.irecv(receiver, {&buffer, 1});
    EXPECT_TRUE(request.ok());
    return request.ok() ? request.value() : nullptr;
  }
  /// Tests both until they are done. The bytes received, -1 where it failed or took too long.
  int finish(void* sent, void* received) {
    int size = -1;
    const bool done = until([&] {
      if (sent != nullptr && testOne(sendNet, sent)) sent = nullptr;
      if (received != nullptr && testOne(recvNet, received, &size)) received = nullptr;
      return sent == nullptr && received == nullptr;
    });
    return done ? size : -1;
  }
  static bool testOne(plugin::Net& net, void* request, int* size = nullptr) {
    std::span<int> sizes;
    if (size != nullptr) sizes = {size, 1};
    auto done = net.test(request, sizes);
    EXPECT_TRUE(done.ok());
    return !done.ok() || done.value();
  }

  plugin::Net& sendNet;
  plugin::Net& recvNet;
  void* sender = nullptr;
  void* receiver = nullptr;
};

/// Bytes that differ by place and by `seed`.
inline std::vector<unsigned char> pattern(std::size_t bytes, unsigned seed) {
  std::vector<unsigned char> data(bytes);
  unsigned state = seed * 2654435761u + 1;
  for (unsigned char& byte : data) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<unsigned char>(state >> 24);
  }
  return data;
}

}  // namespace tutti::test
