#include "ras/process.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "base/log.h"
#include "base/never_destroyed.h"
#include "base/socket/interfaces.h"
#include "base/socket/socket.h"
#include "ras/network/messages.h"
#include "ras/service.h"
#include "ras/settings.h"

namespace tutti::ras {

namespace {

constexpr std::string_view kContactLabel = "tutti ras contact";
/// How long the end of the process may wait until the others know of it.
constexpr milliseconds kFarewell{500};

struct Process {
  std::mutex mutex;
  bool tried = false;
  pid_t pid = 0;  ///< whose service it is: children by fork() have none
  Member self;
  std::unique_ptr<Service> service;
};

Process& process() {
  static NeverDestroyed<Process> one;
  return one.get();
}

std::span<const std::byte> useOf(const int& rank) {
  return std::as_bytes(std::span(&rank, 1));
}

/// The name that nobody changes needs no resolver, which may be slow or missing.
Result<Address> addressOf(const std::string& where) {
  constexpr std::string_view kLocal = "localhost:";
  if (where.starts_with(kLocal)) return Address::parse("127.0.0.1:" + where.substr(kLocal.size()));
  const Result<Address> v4 = Address::parse(where, AF_INET);
  return v4.ok() ? v4 : Address::parse(where);
}

/// Listening sockets that a child by fork() has as well. Where it outlives this process clients would come to it.
std::array<std::atomic<int>, 2> inherited{-1, -1};

void closeInChild() {
  for (std::atomic<int>& fd : inherited) {
    const int open = fd.exchange(-1);
    if (open >= 0) ::close(open);
  }
}

/// Invalid, and an INFO line, where clients cannot come to this process.
Listener listenForClients(const std::string& where) {
  const Result<Address> address = addressOf(where);
  Result<Listener> listener =
      address.ok() ? Listener::listen(address.value(), {.reusePort = address.value().port() != 0}) : address.status();
  if (listener.ok()) {
    info(kInit | kRas, "RAS client listening socket at {}", listener.value().address().text());
    return std::move(listener).value();
  }
  info(kInit | kRas,
       "RAS failed to establish a client listening socket at {}: {}. The job goes on, and clients may reach its other "
       "processes; NCCL_RAS_ADDR sets another address, with port 0 any free port",
       where, threadErrorText());
  return {};
}

/// Where the bootstrap listens as well. Whoever names a loopback address as the root's means this host alone.
Result<Address> ownAddress(const ProcessSettings& settings) {
  Address root;
  if (!settings.commId.empty()) {
    ASSIGN(root, Address::parse(settings.commId));
  }
  if (root.set() && root.isLoopback()) return Address::loopback(root.family());
  ASSIGN(const NetInterface interface, bootstrapInterface(settings.interfaceNames, settings.family, root));
  return interface.address;
}

Result<std::unique_ptr<Service>> startService(const ProcessSettings& settings, const LibraryFacts& library,
                                              Member& self) {
  TRY(bootstrap::initCrypto());
  ASSIGN(const Address own, ownAddress(settings));
  ASSIGN(Listener network, Listener::listen(own));
  bootstrap::fillRandom(self.key);
  self.facts.id = idOf(self.key);
  self.facts.address = network.address();
  self.facts.pid = ::getpid();
  ServiceOptions options{listenForClients(settings.clientAddress), std::move(network), self,
                         Timers::scaled(settings.timeoutFactor), library};
  const std::array<int, 2> listening{options.clients.fd(), options.network.fd()};
  ASSIGN(std::unique_ptr<Service> service, Service::start(std::move(options), Registry::instance()));
  std::copy(listening.begin(), listening.end(), inherited.begin());
  static_cast<void>(::pthread_atfork(nullptr, nullptr, closeInChild));
  return service;
}

/// When the library is unloaded: after exit handlers and destructors of the application.
[[gnu::destructor]] void endProcess() {
  Process& own = process();
  if (own.pid != ::getpid()) return;  // before the lock, which may have been held when this process was forked
  const std::lock_guard lock(own.mutex);
  inherited[0] = inherited[1] = -1;
  if (own.service) own.service->stop(Deadline::in(kFarewell));
}

}  // namespace

void startProcess(const ProcessSettings& settings, const LibraryFacts& library, std::uint64_t hostHash) {
  Process& own = process();
  const std::lock_guard lock(own.mutex);
  if (own.tried || !settings.enabled) return;
  own.tried = true;
  const ErrorsAsInfo harmless;
  Member self;
  self.facts.hostHash = hostHash;
  try {
    Result<std::unique_ptr<Service>> service = startService(settings, library, self);
    if (service.ok()) {
      own.self = self;
      own.service = std::move(service).value();
      own.pid = ::getpid();
      return;
    }
  } catch (const std::bad_alloc&) {
  }
  info(kInit | kRas,
       "RAS does not run in this process: {}. The job goes on; NCCL_RAS_ADDR, NCCL_SOCKET_IFNAME and "
       "NCCL_RAS_ENABLE are what there is to set",
       threadErrorText());
}

Contact offerContact(const bootstrap::Key& commKey, int rank) {
  Process& own = process();
  const std::lock_guard lock(own.mutex);
  if (!own.service) return {};
  return {own.self.facts.address, masked(own.self.key, commKey, kContactLabel, useOf(rank))};
}

std::optional<Member> readContact(const Contact& contact, const bootstrap::Key& commKey, int rank) {
  if (contact.address.family() != AF_INET && contact.address.family() != AF_INET6) return std::nullopt;
  Member member;
  member.key = masked(contact.key, commKey, kContactLabel, useOf(rank));
  member.facts.id = idOf(member.key);
  member.facts.address = contact.address;
  return member;
}

void meet(std::vector<Member> members) {
  Process& own = process();
  const std::lock_guard lock(own.mutex);
  if (own.service) own.service->add(std::move(members));
}

}  // namespace tutti::ras
