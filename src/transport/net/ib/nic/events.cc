#include "transport/net/ib/nic/events.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <utility>

#include "base/log.h"
#include "transport/net/ib/nic/health.h"

namespace tutti::net::ib {

namespace {

/// IBV_EVENT_DEVICE_SPEED_CHANGE, which only newer headers have, as only newer libraries have a text for it.
constexpr int kSpeedChange = 20;

}  // namespace

NicEvents::NicEvents(const Verbs& verbs, ibv_context* context, std::string name)
    : verbs_(verbs), context_(context), name_(std::move(name)), health_(std::make_unique<NicHealth>()) {}

std::unique_ptr<NicEvents> NicEvents::hear(const Verbs& verbs, ibv_context* context, std::string name,
                                           std::string* why) {
  std::unique_ptr<NicEvents> events(new NicEvents(verbs, context, std::move(name)));
  return events->start(why) ? std::move(events) : nullptr;
}

bool NicEvents::start(std::string* why) {
  const int flags = ::fcntl(context_->async_fd, F_GETFL);
  stop_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (flags < 0 || ::fcntl(context_->async_fd, F_SETFL, flags | O_NONBLOCK) != 0 || !stop_.valid()) {
    *why = fmt::format("its events cannot be heard: {}", errnoText(errno));
    return false;
  }
  auto thread = Thread::start("NCCL IbEvents", [this] { listen(); });
  if (!thread.ok()) {
    *why = lastErrorText();
    return false;
  }
  thread_ = std::move(thread).value();
  return true;
}

NicEvents::~NicEvents() {
  if (!thread_.running()) return;
  static_cast<void>(::eventfd_write(stop_.get(), 1));
  thread_.join();
}

void NicEvents::listen() {
  for (;;) {
    pollfd waits[2] = {{context_->async_fd, POLLIN, 0}, {stop_.get(), POLLIN, 0}};
    if (::poll(waits, 2, -1) < 0 && errno != EINTR) return;
    if (waits[1].revents != 0) return;
    // A NIC that was unplugged leaves a descriptor that reads nothing for ever.
    if ((waits[0].revents & (POLLERR | POLLNVAL)) != 0) {
      return health_->deviceFailed("the device is gone");
    }
    if ((waits[0].revents & POLLIN) == 0) continue;
    ibv_async_event event{};
    if (verbs_.get_async_event(context_, &event) != 0) {
      if (errno == EAGAIN || errno == EINTR) continue;
      return health_->deviceFailed(fmt::format("the device is gone ({})", errnoText(errno)));
    }
    take(event);
    verbs_.ack_async_event(&event);
  }
}

void NicEvents::takePortEvent(const ibv_async_event& event, const char* text) {
  const int port = event.element.port_num;
  if (event.event_type == IBV_EVENT_PORT_ERR) health_->portDown(port);
  if (event.event_type == IBV_EVENT_PORT_ACTIVE) health_->portUp(port);
  warn("NET/IB : {}:{} Got non-fatal async event: {}({})", name_, port, text, static_cast<int>(event.event_type));
}

void NicEvents::takeQueuePairEvent(const ibv_async_event& event, const char* text) {
  const std::uint32_t number = event.element.qp->qp_num;
  warn("NET/IB : {} Got async event on queue pair {}: {}({})", name_, number, text, static_cast<int>(event.event_type));
  const bool harmless = event.event_type == IBV_EVENT_PATH_MIG || event.event_type == IBV_EVENT_PATH_MIG_ERR;
  if (!harmless) health_->queuePairFailed(number, text);
}

void NicEvents::takeFatalEvent(const ibv_async_event& event, const char* text) {
  warn("NET/IB : {} Got async fatal event: {}({}): look at dmesg", name_, text, static_cast<int>(event.event_type));
  health_->deviceFailed(text);
}

void NicEvents::take(const ibv_async_event& event) {
  const int number = event.event_type;
  if (number == kSpeedChange) {
    return info(
        kNet,
        "NET/IB : {} Got async event: device speed change({}): channels stay as planned for the speed that it had",
        name_, number);
  }
  const char* const text = verbs_.event_type_str(event.event_type);
  switch (event.event_type) {
    // Which connections use a completion queue nobody can tell here: it overflows only by a fault of this library.
    case IBV_EVENT_CQ_ERR:
    case IBV_EVENT_DEVICE_FATAL:
      return takeFatalEvent(event, text);
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
      return takeQueuePairEvent(event, text);
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return logTrace(kNet, "NET/IB : {}: {}({})", name_, text, number);
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_GID_CHANGE:
      return takePortEvent(event, text);
    // Of what this library does not make.
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
    case IBV_EVENT_WQ_FATAL:
      break;
  }
  // Or newer than it: what the event is of is not known.
  warn("NET/IB : {} Got async event: {}({})", name_, text, number);
}

}  // namespace tutti::net::ib
