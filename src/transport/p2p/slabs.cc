#include "transport/p2p/slabs.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/log.h"
#include "gpu/memory_ledger.h"
#include "transport/common/ranks.h"

namespace tutti::p2p {
namespace {

constexpr transport::FdPurpose kPurpose{"P2P", "tutti-p2p", "NCCL_CUMEM_ENABLE=0 does without descriptors"};
/// Parts begin as allocations do, on pages.
constexpr std::size_t kPart = 4096;

std::string textOf(const transport::LinkSpec& link) {
  const std::string pair = transport::pairText(link.self, link.peer);
  if (link.more == 0) return fmt::format("P2P channel {}, {}", link.channel, pair);
  return fmt::format("P2P channel {} and {} more, {}", link.channel, link.more, pair);
}

}  // namespace

Slabs::Slabs(const gpu::Device& device, const P2pOptions& options, std::shared_ptr<const void> deviceOwner,
             std::shared_ptr<gpu::MemoryLedger> ledger)
    : device_(&device),
      options_(options),
      deviceOwner_(std::move(deviceOwner)),
      ledger_(std::move(ledger)),
      server_(std::make_shared<transport::FdServer>(kPurpose)) {}

Sharing Slabs::sharingOf(const transport::LinkSpec& link) const {
  if (transport::sameProcess(link.self, link.peer)) return Sharing::Address;
  // Descriptors pass through local sockets, which are a network namespace's own.
  const bool passes = link.self.networkNamespace == link.peer.networkNamespace;
  return options_.descriptors && device_->facts().vmm && passes ? Sharing::Descriptor : Sharing::Ipc;
}

Result<std::shared_ptr<Slab>> Slabs::open(const transport::LinkSpec& link, std::size_t bytes) {
  const Sharing sharing = sharingOf(link);
  const std::string about = textOf(link);
  if (sharing == Sharing::Descriptor) {
    const ErrorsAsInfo harmless;
    auto slab = Slab::create(*device_, bytes, {about, ledger_}, sharing, server_, deviceOwner_);
    if (slab.ok()) return slab;
    info(kP2p, "{}: memory cannot be shared by a descriptor, CUDA's IPC handles take its place: {}", about,
         lastErrorText());
  }
  const Sharing plain = sharing == Sharing::Descriptor ? Sharing::Ipc : sharing;
  return Slab::create(*device_, bytes, {about, ledger_}, plain, nullptr, deviceOwner_);
}

Result<std::shared_ptr<SharedMemory>> Slabs::take(const transport::LinkSpec& link, device::Direction direction,
                                                  std::size_t bytes) {
  const std::size_t each = (bytes + kPart - 1) / kPart * kPart;
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Slab> slab = current_.slab.lock();
  const bool goesOn = slab != nullptr && current_.peer == link.peer.rank && current_.direction == direction &&
                      current_.kind == link.kind && current_.each == each && current_.left > 0;
  if (!goesOn) {
    ASSIGN(slab, open(link, each * static_cast<std::size_t>(1 + link.more)));
    current_ = {slab, link.peer.rank, direction, link.kind, each, 0, 1 + link.more};
  }
  --current_.left;
  const std::size_t offset = std::exchange(current_.used, current_.used + each);
  return SharedMemory::create(std::move(slab), offset);
}

std::shared_ptr<SlabImport> Slabs::import(const transport::LinkSpec& link, const SlabName& name) {
  const std::lock_guard lock(mutex_);
  std::erase_if(imports_, [](const auto& known) { return known.expired(); });
  for (const auto& known : imports_) {
    if (auto import = known.lock(); import != nullptr && import->token() == name.ticket.item) return import;
  }
  const std::string owner = transport::rankText(link.peer) + " at " + transport::rankText(link.self);
  auto import = std::make_shared<SlabImport>(*device_, name, owner, options_.patience);
  imports_.push_back(import);
  return import;
}

}  // namespace tutti::p2p
