// One end of a connection through shared host memory.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/clock.h"
#include "base/status.h"
#include "gpu/memory.h"
#include "transport/common/fd_fetch.h"
#include "transport/common/fd_server.h"
#include "transport/common/link_identity.h"
#include "transport/common/pull_window.h"
#include "transport/common/self_test.h"
#include "transport/common/transport.h"
#include "transport/shm/region.h"

namespace tutti::shm {

using device::Direction;

/// The contents of a ConnectHandle.
struct WireHandle : transport::LinkIdentity {
  std::uint64_t address = 0;   ///< of the memory in the owner's process; used only within it
  transport::Ticket ticket{};  ///< for the memory's descriptor; zero within one process
  gpu::MemoryWindow window{};  ///< the sender's, which the receiver may read instead of slots; empty at receivers
};
inline constexpr std::uint32_t kWireMagic = 0x73686d31;
static_assert(sizeof(WireHandle) <= sizeof(transport::ConnectHandle) && std::is_trivially_copyable_v<WireHandle>);

/// Where the receiver answers in the sender's memory, whether it reads the sender's window. A sender keeps its private
/// counters elsewhere.
inline constexpr std::size_t kAnswerOffset = transport::kStepOffset;
enum class WindowAnswer : std::uint64_t { None, Reads, ReadsNot };

/// What the ends of one transport have in common.
struct Surroundings {
  const gpu::Device* device = nullptr;
  std::shared_ptr<const void> deviceOwner;    ///< may be null
  std::shared_ptr<gpu::MemoryLedger> ledger;  ///< counts device memory; may be null
  std::shared_ptr<transport::FdServer> server;
  milliseconds patience{};  ///< with a peer that does not hand out its memory
  bool pulls = false;       ///< receivers may read the sender's memory where it has a window
};

/// Both ends: a region of our own (fifo_layout.h), the peer's once connected, private counters in device memory.
/// See transport.h.
class ShmEndpoint final : public transport::Endpoint {
 public:
  static Result<std::unique_ptr<transport::Endpoint>> open(const Surroundings& around, const transport::LinkSpec& link,
                                                           device::Direction direction);
  ~ShmEndpoint() override;
  transport::ConnectHandle handle() const override;
  Status connect(const transport::ConnectHandle& peer) override;
  /// Fetches the memory of a peer in another process, which that process's FdServer hands out by itself. A sender that
  /// has a window waits for the receiver's answer.
  Result<bool> ready() override;
  Status probeWrite() override;
  Result<bool> probeCheck() override;
  transport::ConnView view() const override;
  std::string_view description() const override { return "SHM/direct"; }

 private:
  ShmEndpoint(const Surroundings& around, const transport::LinkSpec& link, device::Direction direction,
              gpu::DeviceBuffer steps)
      : around_(around),
        link_(link),
        steps_(std::move(steps)),
        wire_{transport::identityOf(link, direction, kWireMagic)} {}
  const gpu::Device& device() const { return *around_.device; }
  /// "SHM channel 3, rank 0 (…) with rank 1 (…)".
  std::string about() const;
  Status createOwn();
  Result<bool> fetched();
  Status adoptPeer(Fd fd);
  /// Receiver, when it has the sender's memory.
  Status answer();
  /// Sender: whether the receiver has answered.
  bool answered();
  Status requireConnected() const;
  transport::SelfTest selfTest() const;

  Surroundings around_;
  transport::LinkSpec link_;
  gpu::DeviceBuffer steps_;
  WireHandle wire_;
  WireHandle peerWire_;
  std::shared_ptr<Region> own_;
  std::shared_ptr<Region> peer_;
  std::byte* peerOnDevice_ = nullptr;        ///< null: not connected
  std::optional<transport::FdFetch> fetch_;  ///< while it is under way
  transport::PullWindow window_;             ///< from the moment on when both ends know that it is used
  transport::PullWindow proposed_;           ///< sender: that the receiver has not answered to
};

}  // namespace tutti::shm
