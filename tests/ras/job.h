// A job of several processes, each of them a service of its own in this one; and clients that ask it.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "ras/service.h"

namespace tutti::ras::test {

inline Listener loopbackListener() {
  auto listener = Listener::listen(Address::loopback(AF_INET));
  EXPECT_TRUE(listener.ok());
  return std::move(listener).value();
}

/// A member that listens at `address`.
inline Member freshMember(const Address& address, int n) {
  EXPECT_TRUE(bootstrap::initCrypto().ok());
  Member member;
  bootstrap::fillRandom(member.key);
  member.facts = {idOf(member.key), address, 1000 + n, 1, std::uint64_t{1} << (n % 64), std::uint64_t{1} << (n % 64)};
  return member;
}

/// One process of the job.
class FakeProcess {
 public:
  FakeProcess(int n, double factor) {
    Listener network = loopbackListener();
    Listener clients = loopbackListener();
    self = freshMember(network.address(), n);
    client = clients.address();
    ServiceOptions options{
        std::move(clients), std::move(network), self, Timers::scaled(factor), {"2.32.3", 13000, 13000, 13000}};
    auto started = Service::start(std::move(options), registry);
    EXPECT_TRUE(started.ok());
    service = std::move(started).value();
  }

  Member self;
  Address client;
  Registry registry;
  std::unique_ptr<Service> service;
  std::vector<std::unique_ptr<Listing>> listings;
};

/// A client. Every wait has an end.
class Client {
 public:
  explicit Client(const Address& at) {
    EXPECT_TRUE(Socket::tryConnect(at, {Deadline::in(std::chrono::seconds(10))}, &socket_).done());
  }
  void say(std::string_view text) {
    static_cast<void>(socket_.sendQuietly(std::as_bytes(std::span(text)), {Deadline::in(std::chrono::seconds(10))}));
  }
  void finish() { ::shutdown(socket_.fd(), SHUT_WR); }
  /// All until the other side closes; what there is by then, where it does not.
  std::string hearAll(std::chrono::seconds patience = std::chrono::seconds(30)) {
    return hearUntil("\x01never", patience);
  }
  /// What comes until it contains `text`.
  std::string hearUntil(std::string_view text, std::chrono::seconds patience = std::chrono::seconds(30)) {
    const Deadline deadline = Deadline::in(patience);
    std::string all;
    std::array<std::byte, 4096> piece;
    while (all.find(text) == std::string::npos && !deadline.expired()) {
      if (!pollFd(socket_.fd(), POLLIN, {deadline}).done()) break;
      const IoOutcome got = socket_.tryRecv(piece);
      if (got.kind == IoOutcome::Kind::WouldBlock) continue;
      if (!got.done()) break;
      all.append(reinterpret_cast<const char*>(piece.data()), got.bytes);
    }
    return all;
  }

 private:
  Socket socket_;
};

inline std::string ask(const FakeProcess& process, std::string_view commands) {
  Client client(process.client);
  client.say(commands);
  return client.hearAll();
}

inline nlohmann::json askJson(const FakeProcess& process, std::string_view before = "") {
  const std::string text = ask(process, std::string(before) + "SET FORMAT json\nSTATUS\n");
  const std::size_t begin = text.find('{');
  return begin == std::string::npos ? nlohmann::json::object()
                                    : nlohmann::json::parse(text.substr(begin), nullptr, false);
}

/// Asks until `holds` of the report does. False: not in time.
template <class Holds>
bool becomes(const FakeProcess& process, const Holds& holds) {
  const Deadline deadline = Deadline::in(std::chrono::seconds(60));
  while (!deadline.expired()) {
    if (holds(askJson(process))) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

inline nlohmann::json processesOf(const nlohmann::json& report) {
  return report.is_object() ? report.value("processes", nlohmann::json::array()) : nlohmann::json::array();
}

/// How many processes are in that state.
inline std::size_t inState(const nlohmann::json& report, std::string_view state) {
  std::size_t count = 0;
  for (const auto& process : processesOf(report)) count += process["state"] == state;
  return count;
}

/// Processes that know each other, with a communicator of one rank each.
class FakeJob {
 public:
  explicit FakeJob(int size, double factor = 1) {
    std::vector<Member> all;
    std::vector<CommMember> ranks;
    for (int n = 0; n < size; ++n) {
      processes.push_back(std::make_unique<FakeProcess>(n, factor));
      all.push_back(processes.back()->self);
      ranks.push_back({processes.back()->self.facts.id, n, n});
    }
    for (int n = 0; n < size; ++n) {
      FakeProcess& process = *processes[static_cast<std::size_t>(n)];
      process.listings.push_back(process.registry.add({{7, 8, 9}, size, n, n, n}, ranks, [] { return RankState{}; }));
      process.service->add(all);
    }
  }
  FakeProcess& operator[](std::size_t n) { return *processes[n]; }

  std::vector<std::unique_ptr<FakeProcess>> processes;
};

}  // namespace tutti::ras::test
