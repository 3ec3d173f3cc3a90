// The sending end of a connection that another rank of the host sends over in our stead.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "gpu/context.h"
#include "gpu/memory.h"
#include "plugin/network/net.h"
#include "transport/common/transport.h"
#include "transport/net/lane/path.h"
#include "transport/net/pxn/memory.h"
#include "transport/net/pxn/pool.h"
#include "transport/net/pxn/task.h"
#include "transport/net/pxn/wire.h"
#include "transport/shm/region.h"

namespace tutti::net::pxn {

/// What a rank needs in order to send through others.
struct SenderSetup {
  LentPools& pools;                           ///< must outlive the endpoints' ready()
  std::uint32_t sharedSlots = 0;              ///< see Order
  std::shared_ptr<const void> deviceOwner;    ///< keeps the device for memory that outlives the endpoint; may be null
  std::shared_ptr<gpu::MemoryLedger> ledger;  ///< counts device memory; may be null
  Secret secret{};
  milliseconds patience{30'000};  ///< with a relay that does not answer
};

/// Through whom, over which device of the network, to which of the receiver's listeners.
struct Way {
  topo::PeerInfo relay;
  int netDevice = 0;
  std::array<plugin::NetHandle, 2> listeners{};
  std::uint32_t parting = 0;  ///< see net::WireHandle
};

/// See transport.h, from connect() on: it is made when the receiver's handle has come.
class RelayEndpoint final : public transport::Endpoint {
 public:
  /// `path` describes the sender and gets its description here. `netName`: of the network.
  RelayEndpoint(const gpu::Device& device, const SenderSetup& setup, net::NetPath path, const Way& way,
                std::string_view netName);
  transport::ConnectHandle handle() const override { return {}; }
  Status connect(const transport::ConnectHandle&) override { return {}; }
  Result<bool> ready() override;
  bool calls() const override { return phase_ >= Phase::Mapped; }
  Result<bool> meet() override;
  Status probeWrite() override { return {}; }
  Result<bool> probeCheck() override { return phase_ == Phase::Ready; }
  transport::ConnView view() const override;
  proxy::ProgressTask* task() override { return task_ ? &*task_ : nullptr; }
  std::string_view description() const override { return path_.description; }
  bool eachEndReports() const override { return true; }

 private:
  enum class Phase : std::uint8_t { Knocking, Greeting, Ordered, Mapped, Joined, Meeting, Ready };

  Status knock();
  /// A relay closes lines without a word while it is beset by strangers: the next call knocks again.
  Status turnedAway();
  Status listen();
  Status take(std::span<const std::byte> packet, Fd attached);
  Status order(const Challenge& challenge);
  Status take(const Answer& answer, Fd attached);
  Status adopt(std::uint64_t bytes, Fd attached);
  Status joinPool(const Answer& answer, Fd attached);
  Status start();
  Status lost(std::string_view why) const;

  const gpu::Device& device_;
  const SenderSetup setup_;
  net::NetPath path_;
  const Way way_;
  const Layout layout_;
  Deadline until_;
  Phase phase_ = Phase::Knocking;
  Fd line_;
  int turnedAway_ = 0;  ///< so many times
  Hello hello_;
  std::optional<gpu::DeviceBuffer> steps_;
  std::shared_ptr<shm::Region> memory_;
  std::shared_ptr<LentSlots> slots_;  ///< null: slots of its own
  std::optional<RelayedTask> task_;
};

}  // namespace tutti::net::pxn
