#include "transport/net/pxn/service.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/log.h"
#include "base/threads/shortage.h"
#include "plugin/network/net.h"
#include "proxy/engine.h"
#include "transport/net/pxn/link.h"

namespace tutti::net::pxn {
namespace {

/// Between two steps of connections that are being made.
constexpr int kStepMs = 1;

constexpr const char* kRemedy =
    "The descriptor limit may be reached (ulimit -n); NCCL_PXN_DISABLE=1 does without ranks that send for others";

}  // namespace

/// What the service has for those who send through it.
struct RelayService::Senders {
  PxnConnections connections;
  RelayPools pools;  ///< the thread's
  std::unique_ptr<proxy::ProgressGroup> group;
  std::unique_ptr<Host> host;
  std::vector<std::unique_ptr<RelayLink>> links;  ///< the thread's, once it runs; strangers among them
};

RelayService::RelayService(ServiceSetup setup) : setup_(std::move(setup)), senders_(std::make_unique<Senders>()) {}

bool RelayService::serves() const {
  return senders_->connections.any();
}

std::vector<std::string> RelayService::underWay() const {
  return senders_->connections.underWay();
}

Result<std::shared_ptr<RelayService>> RelayService::start(ServiceSetup setup) {
  TRY(initProofs());
  std::shared_ptr<RelayService> service(new RelayService(std::move(setup)));
  TRY(service->open());
  return service;
}

Status RelayService::open() {
  proxy::GroupHooks hooks;
  // The works themselves know whether their senders are at it.
  hooks.busy = [] { return false; };
  ASSIGN(senders_->group, setup_.engine->group(std::move(hooks)));
  senders_->host.reset(new Host{*setup_.net, *setup_.device, *senders_->group, senders_->connections, senders_->pools,
                                setup_.peers, setup_.rank, setup_.secret});
  waker_ = Waker::create();
  if (!waker_.valid()) return fail(ncclSystemError, "PXN : eventfd failed: {}. {}", errnoText(errno), kRemedy);
  TRY(listener_.open(lineName(setup_.secret, setup_.rank), "PXN", kRemedy));
  ASSIGN(thread_, Thread::start("tutti-relay", [this] { throughShortages([this] { run(); }); }));
  return {};
}

RelayService::~RelayService() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  waker_.wake();
  thread_.join();
  senders_->links.clear();
}

void RelayService::retire(std::shared_ptr<RelayService> service) {
  RelayService& kept = *service;
  const std::lock_guard lock(kept.mutex_);
  kept.retired_ = true;
  kept.thread_.detach();
  kept.waker_.wake();
  kept.self_ = std::move(service);
}

bool RelayService::leave() {
  const std::lock_guard lock(mutex_);
  if (retired_) {
    listener_.close();
    std::erase_if(senders_->links, [](const auto& link) { return !link->known(); });
  }
  return stopping_ || (retired_ && senders_->links.empty());
}

/// Milliseconds to sleep at most; -1: until something comes.
int RelayService::patience() const {
  int most = listener_.patience();
  const auto atMost = [&most](int ms) { most = most < 0 ? ms : std::min(most, ms); };
  for (const auto& link : senders_->links) {
    if (link->joining()) atMost(kStepMs);
    if (!link->known()) atMost(static_cast<int>(link->until().remaining().count()));
  }
  return most;
}

void RelayService::run() {
  std::vector<pollfd> polled;
  while (!leave()) {
    polled.assign({{waker_.fd(), POLLIN, 0}, {listener_.polled(), POLLIN, 0}});
    for (const auto& link : senders_->links) polled.push_back({link->line(), POLLIN, 0});
    ::poll(polled.data(), polled.size(), patience());
    waker_.drain();
    serve();
    acceptAll();
  }
  finished_.store(true, std::memory_order_release);
  // The last owner may be this thread: nothing here may be touched afterwards.
  std::shared_ptr<RelayService> last;
  const std::lock_guard lock(mutex_);
  last.swap(self_);
}

void RelayService::serve() {
  std::erase_if(senders_->links, [](const std::unique_ptr<RelayLink>& link) {
    if (!link->listen()) return true;
    if (link->joining() && !link->step()) return true;
    return !link->known() && link->until().expired();
  });
}

void RelayService::acceptAll() {
  for (Fd line = listener_.accept(); line.valid(); line = listener_.accept()) {
    auto link = std::make_unique<RelayLink>(*senders_->host, std::move(line));
    bool stays = link->listen();
    if (stays && link->stranger()) {
      UnprovenPlaces::Place place = setup_.places->takeLocal();
      stays = place.taken();
      link->take(std::move(place));
    }
    if (stays) {
      senders_->links.push_back(std::move(link));
    } else {
      listener_.turnedAway();
    }
  }
}

}  // namespace tutti::net::pxn
