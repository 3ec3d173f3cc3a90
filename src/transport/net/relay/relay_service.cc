#include "transport/net/relay/relay_service.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "transport/shm/fd_wire.h"

namespace tutti::relay {
namespace {

constexpr int kBacklog = 1024;
/// How long a stranger may take to prove who it is.
constexpr std::chrono::seconds kPatience{5};
/// How long nobody is let in after the descriptors ran out.
constexpr int kCrowdedMs = 20;
/// Between two steps of connections that are being made.
constexpr int kStepMs = 1;

constexpr const char* kRemedy =
    "The descriptor limit may be reached (ulimit -n); NCCL_PXN_DISABLE=1 does without ranks that send for others";

}  // namespace

Result<std::shared_ptr<RelayService>> RelayService::start(ServiceSetup setup) {
  TRY(initProofs());
  std::shared_ptr<RelayService> service(new RelayService(std::move(setup)));
  TRY(service->open());
  return service;
}

Status RelayService::open() {
  GroupHooks hooks;
  // The works themselves know whether their senders are at it.
  hooks.busy = [] { return false; };
  ASSIGN(group_, setup_.engine->group(std::move(hooks)));
  host_.reset(new Host{*setup_.net, *setup_.device, *group_, setup_.peers, setup_.rank, setup_.secret});
  wake_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_.valid()) return fail(ncclSystemError, "PXN : eventfd failed: {}. {}", errnoText(errno), kRemedy);
  Fd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.valid()) return fail(ncclSystemError, "PXN : a local socket failed: {}. {}", errnoText(errno), kRemedy);
  const LineName name = lineName(setup_.secret, setup_.rank);
  if (::bind(listener.get(), name.generic(), name.length) != 0 || ::listen(listener.get(), kBacklog) != 0) {
    return fail(ncclSystemError, "PXN : listening at a local socket failed: {}. {}", errnoText(errno), kRemedy);
  }
  listener_ = std::move(listener);
  ASSIGN(thread_, Thread::start("tutti-relay", [this] { run(); }));
  return {};
}

RelayService::~RelayService() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake();
  thread_.join();
  links_.clear();
}

void RelayService::retire(std::shared_ptr<RelayService> service) {
  RelayService& kept = *service;
  const std::lock_guard lock(kept.mutex_);
  kept.retired_ = true;
  kept.thread_.detach();
  kept.wake();
  kept.self_ = std::move(service);
}

void RelayService::wake() const {
  const std::uint64_t one = 1;
  if (wake_.valid()) [[maybe_unused]]
    const ssize_t written = ::write(wake_.get(), &one, sizeof(one));
}

bool RelayService::leave() {
  const std::lock_guard lock(mutex_);
  if (retired_) {
    listener_.reset();
    std::erase_if(links_, [](const auto& link) { return !link->known(); });
  }
  return stopping_ || (retired_ && links_.empty());
}

/// Milliseconds to sleep at most; -1: until something comes.
int RelayService::patience() const {
  int most = crowded_ ? kCrowdedMs : -1;
  const auto atMost = [&most](int ms) { most = most < 0 ? ms : std::min(most, ms); };
  for (const auto& link : links_) {
    if (link->joining()) atMost(kStepMs);
    if (!link->known()) atMost(static_cast<int>(link->until().remaining().count()));
  }
  return most;
}

void RelayService::run() {
  std::vector<pollfd> polled;
  while (!leave()) {
    polled.assign({{wake_.get(), POLLIN, 0}, {crowded_ ? -1 : listener_.get(), POLLIN, 0}});
    for (const auto& link : links_) polled.push_back({link->line(), POLLIN, 0});
    ::poll(polled.data(), polled.size(), patience());
    crowded_ = false;
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t drained = ::read(wake_.get(), &count, sizeof(count));
    serve();
    if (polled[1].revents != 0) acceptAll();
  }
  finished_.store(true, std::memory_order_release);
  // The last owner may be this thread: nothing here may be touched afterwards.
  std::shared_ptr<RelayService> last;
  const std::lock_guard lock(mutex_);
  last.swap(self_);
}

void RelayService::serve() {
  std::erase_if(links_, [](const std::unique_ptr<RelayLink>& link) {
    if (!link->listen()) return true;
    if (link->joining() && !link->step()) return true;
    return !link->known() && link->until().expired();
  });
}

void RelayService::acceptAll() {
  for (;;) {
    Fd line(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!line.valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      // Out of descriptors or memory, the listener would stay readable and the thread would spin.
      crowded_ = errno != EAGAIN;
      return;
    }
    if (!shm::peerIsOurUser(line.get())) continue;
    const auto stranger = [](const std::unique_ptr<RelayLink>& link) { return !link->known(); };
    if (static_cast<std::size_t>(std::count_if(links_.begin(), links_.end(), stranger)) >= kMostStrangers) {
      links_.erase(std::find_if(links_.begin(), links_.end(), stranger));
    }
    links_.push_back(std::make_unique<RelayLink>(*host_, std::move(line), Deadline::in(kPatience)));
    if (!links_.back()->listen()) links_.pop_back();
  }
}

}  // namespace tutti::relay
