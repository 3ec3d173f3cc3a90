#include "transport/net/ib/connector.h"

#include <algorithm>

#include "transport/net/ib/nic/nic.h"
#include "transport/net/ib/nic/options.h"
#include "transport/net/ib/nic/port.h"
#include "transport/net/ib/sender.h"
#include "transport/net/tcp/connector.h"

namespace tutti::net::ib {

std::size_t queuePairsFor(std::size_t ports, std::size_t remotePorts, std::size_t perPort) {
  return std::min(kMostQueuePairs, std::max<std::size_t>(perPort, 1) * std::max(ports, remotePorts));
}

IbConnector::IbConnector(std::vector<const IbPort*> ports, const IbHandle& handle, const IbOptions& options,
                         std::unique_ptr<tcp::SocketConnector> control, milliseconds setup)
    : link_(std::make_unique<IbLink>()),
      queuePairs_(queuePairsFor(ports.size(), handle.children, static_cast<std::size_t>(options.queuePairs))),
      dial_(std::move(control)),
      setup_(setup) {
  link_->ports = std::move(ports);
  link_->options = options;
}

IbConnector::~IbConnector() = default;

Status IbConnector::makeQueuePairs() {
  const IbOptions& options = link_->options;
  ASSIGN(link_->pairs, QueuePairs::create(link_->ports,
                                          {.count = queuePairs_,
                                           .sends = IbSender::kSends,
                                           .receives = 1,
                                           .trafficClass = options.trafficClass,
                                           .serviceLevel = options.serviceLevel},
                                          options));
  ASSIGN(link_->memory, EndMemory::create(link_->ports, IbSender::kMemoryBytes));
  ASSIGN(link_->sizes, EndMemory::create(link_->ports, sizeof(SizeRow) * kIbRows));
  own_ = link_->describe();
  return {};
}

/// False: cannot go on now.
Result<bool> IbConnector::step() {
  static constexpr std::byte kReady{kIbReady};
  switch (step_) {
    case Step::Dialling: {
      ASSIGN(auto link, dial_->advance());
      if (!link) return false;
      link_->control = std::make_unique<ControlSocket>(std::move(*link), setup_);
      TRY(makeQueuePairs());
      step_ = Step::Telling;
      return true;
    }
    case Step::Telling: {
      ASSIGN(const bool told, link_->control->send(std::as_bytes(std::span(&own_, 1))));
      if (told) step_ = Step::Hearing;
      return told;
    }
    case Step::Hearing: {
      ASSIGN(const bool heard, link_->control->receive(std::as_writable_bytes(std::span(&remote_, 1))));
      if (heard) step_ = Step::Connecting;
      return heard;
    }
    case Step::Connecting: {
      ASSIGN(const bool standing, link_->pairs->connect(remote_));
      if (standing) step_ = Step::Announcing;
      if (!standing) TRY(link_->control->checkStanding());
      return standing;
    }
    case Step::Announcing:
      return link_->control->send(std::span(&kReady, 1));
  }
  return false;
}

Result<std::unique_ptr<IbSender>> IbConnector::advance() {
  for (;;) {
    const bool last = step_ == Step::Announcing;
    ASSIGN(const bool further, step());
    if (!further) return std::unique_ptr<IbSender>();
    if (last) return std::make_unique<IbSender>(std::move(link_));
  }
}

}  // namespace tutti::net::ib
