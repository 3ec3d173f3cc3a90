// The accepting end of the network over verbs, until a connection stands.
#pragma once

#include <memory>
#include <vector>

#include "transport/net/ib/wire.h"

namespace tutti::net::tcp {
class SocketListener;
}

namespace tutti::net::ib {

class IbReceiver;
struct IbLink;

/// Used by one thread at a time.
class IbListener {
 public:
  /// `ports`: of the device, which outlive the connection. `flushes`: what is received may be GPU memory.
  IbListener(std::vector<const IbPort*> ports, const IbOptions& options, std::unique_ptr<tcp::SocketListener> control,
             milliseconds setup, bool flushes);
  ~IbListener();

  /// What the peer needs for its connect().
  IbHandle handle() const;
  /// The connection, once; null while it does not stand. Does not wait. Errors: those of SocketListener, ControlSocket
  /// and QueuePairs.
  Result<std::unique_ptr<IbReceiver>> accept();

 private:
  enum class Step : std::uint8_t { Accepting, Hearing, Connecting, Telling, Awaiting };
  Status makeQueuePairs();
  Result<bool> step();
  Result<std::unique_ptr<IbReceiver>> finish();

  std::unique_ptr<IbLink> link_;
  std::unique_ptr<tcp::SocketListener> listener_;
  milliseconds setup_;
  bool flushes_;
  Step step_ = Step::Accepting;
  bool over_ = false;
  SideBlock own_;
  SideBlock remote_;
  std::byte ready_{};
};

}  // namespace tutti::net::ib
