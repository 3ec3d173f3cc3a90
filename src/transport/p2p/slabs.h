// Which slab a link's memory comes from, at both ends.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "base/status.h"
#include "transport/common/ranks.h"
#include "transport/common/transport.h"
#include "transport/p2p/memory.h"
#include "transport/p2p/options.h"
#include "transport/p2p/slab.h"

namespace tutti::p2p {

/// The slabs of one transport: our own, one for the links that are opened to a peer together (LinkSpec::more), and
/// those of peers, each mapped once. Any thread.
class Slabs {
 public:
  /// `device` must outlive this and all that it gave. `deviceOwner` and `ledger` may be null.
  Slabs(const gpu::Device& device, const P2pOptions& options, std::shared_ptr<const void> deviceOwner,
        std::shared_ptr<gpu::MemoryLedger> ledger);

  /// The memory of our end of `link`, `bytes` at least.
  Result<std::shared_ptr<SharedMemory>> take(const transport::LinkSpec& link, device::Direction direction,
                                             std::size_t bytes);
  /// The peer's slab, which may not be mapped yet.
  std::shared_ptr<SlabImport> import(const transport::LinkSpec& link, const SlabName& name);

 private:
  /// The one that further links may have parts of.
  struct Current {
    std::weak_ptr<Slab> slab;
    int peer = -1;
    device::Direction direction = device::Direction::Send;
    device::ConnKind kind = device::ConnKind::Graph;
    std::size_t each = 0;  ///< bytes of a part
    std::size_t used = 0;  ///< bytes
    int left = 0;          ///< parts that were announced and not taken
  };
  Sharing sharingOf(const transport::LinkSpec& link) const;
  Result<std::shared_ptr<Slab>> open(const transport::LinkSpec& link, std::size_t bytes);

  const gpu::Device* device_;
  P2pOptions options_;
  std::shared_ptr<const void> deviceOwner_;
  std::shared_ptr<gpu::MemoryLedger> ledger_;
  std::shared_ptr<transport::FdServer> server_;
  std::mutex mutex_;
  Current current_;
  std::vector<std::weak_ptr<SlabImport>> imports_;
};

}  // namespace tutti::p2p
