#include "transport/net/ib/listener.h"

#include "base/log.h"
#include "transport/net/ib/nic/nic.h"
#include "transport/net/ib/nic/options.h"
#include "transport/net/ib/nic/port.h"
#include "transport/net/ib/receiver.h"
#include "transport/net/tcp/listener.h"

namespace tutti::net::ib {

namespace {

/// What a receiver writes is short: a row of one grant fits into the work request.
constexpr std::uint32_t kInlineBytes = sizeof(Grant);

}  // namespace

IbListener::IbListener(std::vector<const IbPort*> ports, const IbOptions& options,
                       std::unique_ptr<tcp::SocketListener> control, milliseconds setup, bool flushes)
    : link_(std::make_unique<IbLink>()), listener_(std::move(control)), setup_(setup), flushes_(flushes) {
  link_->ports = std::move(ports);
  link_->options = options;
}

IbListener::~IbListener() = default;

IbHandle IbListener::handle() const {
  return {.socket = listener_->handle(),
          .children = static_cast<std::uint32_t>(link_->ports.size()),
          .queuePairs = static_cast<std::uint32_t>(link_->options.queuePairs)};
}

Status IbListener::makeQueuePairs() {
  if (remote_.magic != kIbMagic || remote_.queuePairs == 0 || remote_.queuePairs > kMostQueuePairs) {
    return fail(ncclInternalError,
                "NET/IB : What peer {} says of its queue pairs is none: do all ranks use the same library?",
                link_->control->peer().text());
  }
  const IbOptions& options = link_->options;
  link_->options.splits = remote_.splits != 0;
  ASSIGN(link_->pairs, QueuePairs::create(link_->ports,
                                          {.count = remote_.queuePairs,
                                           .sends = IbReceiver::kSends,
                                           .receives = IbReceiver::kReceives,
                                           .inlineBytes = options.inlines ? kInlineBytes : 0,
                                           .trafficClass = options.grantTrafficClass >= 0 ? options.grantTrafficClass
                                                                                          : remote_.trafficClass,
                                           .serviceLevel = remote_.serviceLevel},
                                          options));
  ASSIGN(link_->memory, EndMemory::create(link_->ports, IbReceiver::kMemoryBytes));
  own_ = link_->describe();
  return {};
}

/// False: cannot go on now.
Result<bool> IbListener::step() {
  switch (step_) {
    case Step::Accepting: {
      ASSIGN(auto link, listener_->accept());
      if (!link) return false;
      link_->control = std::make_unique<ControlSocket>(std::move(*link), setup_);
      step_ = Step::Hearing;
      return true;
    }
    case Step::Hearing: {
      ASSIGN(const bool heard, link_->control->receive(std::as_writable_bytes(std::span(&remote_, 1))));
      if (!heard) return false;
      TRY(makeQueuePairs());
      step_ = Step::Connecting;
      return true;
    }
    case Step::Connecting: {
      ASSIGN(const bool standing, link_->pairs->connect(remote_));
      if (standing) {
        own_ = link_->describe();  // of those that stand, with what they use of ECE
        step_ = Step::Telling;
      }
      if (!standing) TRY(link_->control->checkStanding());
      return standing;
    }
    case Step::Telling: {
      ASSIGN(const bool told, link_->control->send(std::as_bytes(std::span(&own_, 1))));
      if (told) step_ = Step::Awaiting;
      return told;
    }
    case Step::Awaiting:
      return link_->control->receive(std::span(&ready_, 1));
  }
  return false;
}

Result<std::unique_ptr<IbReceiver>> IbListener::finish() {
  over_ = true;
  std::unique_ptr<FlushPairs> flush;
  if (flushes_) {
    std::bitset<kMostChildren> used;
    for (std::size_t i = 0; i < link_->pairs->count(); ++i) {
      if (link_->pairs->has(i)) used.set(link_->pairs->portOf(i));
    }
    ASSIGN(flush, FlushPairs::open(link_->ports, link_->options, used));
  }
  return std::make_unique<IbReceiver>(std::move(link_), std::move(flush));
}

Result<std::unique_ptr<IbReceiver>> IbListener::accept() {
  while (!over_) {
    const bool last = step_ == Step::Awaiting;
    ASSIGN(const bool further, step());
    if (!further) break;
    if (last) return finish();
  }
  return std::unique_ptr<IbReceiver>();
}

}  // namespace tutti::net::ib
