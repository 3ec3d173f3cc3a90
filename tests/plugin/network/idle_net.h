// A network that can be begun and nothing more, for tests that need some of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "plugin/network/net.h"

namespace tutti::test {

/// Has no devices, and gives nothing for whatever it is asked.
class IdleNet : public plugin::Net {
 public:
  std::string_view name() const override { return "Idle"; }
  Result<int> devices() override { return 0; }
  Result<plugin::NetProperties> properties(int) override { return plugin::NetProperties{}; }
  Result<void*> listen(int, plugin::NetHandle&) override { return nullptr; }
  Result<void*> connect(int, plugin::NetHandle&) override { return nullptr; }
  Result<void*> accept(void*) override { return nullptr; }
  Status closeListen(void*) override { return {}; }
  Status closeSend(void*) override { return {}; }
  Status closeRecv(void*) override { return {}; }
  Result<void*> registerMemory(void*, void*, std::size_t, plugin::PtrKind) override { return nullptr; }
  bool takesDmaBuf() const override { return false; }
  Result<void*> registerDmaBuf(void*, void*, std::size_t, std::uint64_t, int) override { return nullptr; }
  Status deregisterMemory(void*, void*) override { return {}; }
  Result<void*> isend(void*, const plugin::NetBuffer&) override { return nullptr; }
  Result<void*> irecv(void*, std::span<const plugin::NetBuffer>) override { return nullptr; }
  Result<void*> iflush(void*, std::span<const plugin::NetBuffer>) override { return nullptr; }
  Result<bool> test(void*, std::span<int>) override { return true; }
  bool fuses() const override { return false; }
  plugin::NetFusion makeVirtual(std::span<const int>) override { return {}; }
};

}  // namespace tutti::test
