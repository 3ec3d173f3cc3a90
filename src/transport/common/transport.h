// What every transport offers: reach a peer, open one side of a connection, connect it, prove that it works.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "base/status.h"
#include "device/conn_view.h"
#include "proxy/task.h"
#include "topo/machine/peer_info.h"

namespace tutti::transport {

/// What one side of a connection tells the other, opaque to whoever carries it. Trivially copyable.
struct ConnectHandle {
  std::array<std::byte, 320> bytes{};
};

/// What kernels of this rank see of a connection, as it sends or receives.
using ConnView = std::variant<device::SendConn, device::RecvConn>;
/// What is the same for both.
inline const device::ConnFifos& fifosOf(const ConnView& view) {
  return std::visit([](const auto& conn) -> const device::ConnFifos& { return conn; }, view);
}

/// One connection to be opened: one direction, one channel, one peer.
struct LinkSpec {
  topo::PeerInfo self;
  topo::PeerInfo peer;
  int channel = 0;
  /// Bytes of one slot per protocol (LL, LL128, Simple); 0: this protocol is not used on the link.
  device::SlotBytes slotBytes{};
  /// Which kind of connection it is, for messages and keys.
  device::ConnKind kind = device::ConnKind::Graph;
  /// So many further ones of this peer, direction and kind are opened right after it: they may share an allocation.
  int more = 0;
};

/// One side of one connection; owns what it allocated or mapped. Used by one thread at a time. Order of calls:
/// handle() -> [exchange] -> connect(peer's) -> ready() until it says so -> probeWrite() -> [exchange] -> meet() until
/// it says so -> probeCheck() -> [exchange] -> view().
class Endpoint {
 public:
  virtual ~Endpoint() = default;
  virtual ConnectHandle handle() const = 0;
  virtual Status connect(const ConnectHandle& peer) = 0;
  /// Whether connect() has come to its end. Transports that need both sides at once go on here, without waiting.
  virtual Result<bool> ready() { return true; }
  /// After connect(), where Transport::callsFirst(): whether a peer that waits for this side's call need not wait long.
  virtual bool calls() const { return true; }
  /// When both sides are ready: whether they have heard each other. Goes on here, without waiting.
  virtual Result<bool> meet() { return true; }
  /// Writes a pattern into whatever this side will write at run time (the peer's slots, the peer's counters).
  virtual Status probeWrite() = 0;
  /// Checks that the peer's pattern arrived here and clears it. false: it did not.
  virtual Result<bool> probeCheck() = 0;
  /// Valid after connect(); what kernels of this rank use.
  virtual ConnView view() const = 0;
  /// What a host thread has to drive while kernels use the connection; null: nothing. Owned by the endpoint.
  virtual proxy::ProgressTask* task() { return nullptr; }
  /// After connect(): whether several communicators may use it in turn; the same at both ends.
  virtual bool shareable() const { return true; }
  /// Nobody writes to this side's memory any more: it may be freed with this end. Otherwise, after a failure, it has to
  /// stay for as long as kernels of a peer in this process may reach it.
  virtual void settle() {}
  /// Lets go of what the peer owns, which may free it from then on. Afterwards this may only be destroyed.
  virtual void detach() {}
  /// For the "Channel 00/0 : 0[0] -> 1[1] via P2P/IPC" line.
  virtual std::string_view description() const = 0;
  /// Whether that line is printed on both sides, for their descriptions may differ.
  virtual bool eachEndReports() const { return false; }
};

/// What a link between two ranks is good for, as one of them sees it.
enum class LinkQuality : std::uint8_t {
  None,        ///< this transport does not join them
  Plain,       ///< memory of the other rank can be written
  WholeLines,  ///< and 128-byte stores of a warp arrive whole: what the LL128 protocol needs
};

/// Stateless but for what its constructor was given; one object per communicator and device.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::string_view name() const = 0;
  /// Whether two ranks could be connected this way; must give the same answer on both.
  virtual Result<bool> reachable(const topo::PeerInfo& self, const topo::PeerInfo& peer) const = 0;
  /// Why reachable() says no, for the error when no transport is left: "on different hosts"; empty if it says yes.
  virtual std::string whyNot(const topo::PeerInfo& self, const topo::PeerInfo& peer) const {
    (void)self, (void)peer;
    return {};
  }
  /// What this rank's driver says of the link; the peer's may say something else, so decisions take what both have.
  virtual Result<LinkQuality> judge(const topo::PeerInfo& self, const topo::PeerInfo& peer) const {
    ASSIGN(const bool reaches, reachable(self, peer));
    return reaches ? LinkQuality::Plain : LinkQuality::None;
  }
  /// Whether a host thread stands between the kernels: then only what goes through slots may be sent.
  virtual bool proxied() const { return false; }
  /// Whether a receiver may wait for its sender's call within connect() or ready(): it is given the sender's handle
  /// only when that has called.
  virtual bool callsFirst() const { return false; }
  virtual Result<std::unique_ptr<Endpoint>> openSend(const LinkSpec& link) = 0;
  virtual Result<std::unique_ptr<Endpoint>> openRecv(const LinkSpec& link) = 0;
};

}  // namespace tutti::transport
