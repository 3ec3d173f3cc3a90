// The simplest kernel of the library: a rank's message to itself, a copy on one device.
#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "base/status.h"
#include "device/work.h"
#include "gpu/kernels.h"
#include "gpu/memory.h"
#include "gpu/memory_ledger.h"

namespace tutti::test {

/// Where the build put libtutti-kernels-host.so.
inline std::string hostKernelsPath() {
  const char* path = std::getenv("TUTTI_TEST_KERNELS");  // NOLINT(concurrency-mt-unsafe)
  return path == nullptr ? "" : path;
}

/// Loads the kernel and holds what its arguments point at.
class SelfCopy {
 public:
  static Result<std::unique_ptr<SelfCopy>> create(const gpu::Device& device) {
    std::unique_ptr<SelfCopy> copy(new SelfCopy);
    ASSIGN(copy->kernels_, gpu::KernelSet::create(device, {hostKernelsPath()}));
    ASSIGN(copy->function_, copy->kernels_->get("tutti_SendRecv_Copy_i8"));
    ASSIGN(gpu::DeviceBuffer view, gpu::DeviceBuffer::create(device, sizeof(Tables), "test"));
    ASSIGN(gpu::PinnedBuffer word, gpu::PinnedBuffer::create(device, sizeof(std::uint32_t), "test"));
    Tables tables{};  // the one channel has no connections
    device::CommView& comm = tables.comm;
    comm.channels = &reinterpret_cast<Tables*>(view.data())->channel;
    comm.abortWord = reinterpret_cast<const std::uint32_t*>(word.onDevice());
    comm.nRanks = 1;
    comm.nChannels = 1;
    TRY(gpu::copyToDevice(device, view.address(), std::as_bytes(std::span(&tables, 1))));
    copy->view_ = std::make_unique<gpu::DeviceBuffer>(std::move(view));
    copy->word_ = std::make_unique<gpu::PinnedBuffer>(std::move(word));
    return copy;
  }
  static constexpr unsigned kThreads = 64;
  CUfunction function() const { return function_; }
  device::KernelArgs args(const gpu::DeviceBuffer& from, const gpu::DeviceBuffer& to) const {
    device::KernelArgs args;
    std::memset(&args, 0, sizeof(args));
    args.comm = reinterpret_cast<const device::CommView*>(view_->data());
    args.nWorks = 1;
    args.p2p[0].send = from.data();
    args.p2p[0].recv = to.data();
    args.p2p[0].sendBytes = from.size();
    args.p2p[0].recvBytes = to.size();
    return args;
  }

 private:
  struct Tables {
    device::CommView comm;
    device::ChannelView channel;
  };
  SelfCopy() = default;
  std::unique_ptr<gpu::KernelSet> kernels_;
  std::unique_ptr<gpu::DeviceBuffer> view_;
  std::unique_ptr<gpu::PinnedBuffer> word_;
  CUfunction function_ = nullptr;
};

}  // namespace tutti::test
