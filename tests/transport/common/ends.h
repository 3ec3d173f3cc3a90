// Looking at both ends of a connection on devices that work.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <thread>

#include "base/clock.h"
#include "gpu/context.h"
#include "gpu/memory.h"
#include "transport/common/conn_views.h"
#include "transport/common/transport.h"
#include "transport/common/up.h"

namespace tutti::test {

inline std::unique_ptr<gpu::Device> openDevice(int ordinal) {
  const auto driver = gpu::loadDriver();
  if (!driver.ok()) return nullptr;
  auto device = gpu::Device::create(*driver.value(), ordinal);
  return device.ok() ? std::move(device).value() : nullptr;
}

inline std::uint64_t wordAt(const gpu::Device& device, const void* address) {
  std::uint64_t word = ~std::uint64_t{0};
  EXPECT_TRUE(
      gpu::copyToHost(device, std::as_writable_bytes(std::span(&word, 1)), reinterpret_cast<CUdeviceptr>(address))
          .ok());
  return word;
}

/// Nothing of the probe may be left in what kernels start from.
inline void expectUntouched(const gpu::Device& device, const device::ConnFifos& view) {
  for (const device::Counter* counter : {view.tail, view.head, view.step}) EXPECT_EQ(wordAt(device, counter), 0U);
  for (int p = 0; p < device::kProtocols; ++p) {
    if (view.slotBytes[p] == 0) continue;
    const std::byte* last = view.slots[p] + std::size_t{view.slotBytes[p]} * device::kSteps - sizeof(std::uint64_t);
    EXPECT_EQ(wordAt(device, view.slots[p]), 0U);
    EXPECT_EQ(wordAt(device, last), 0U);
  }
}

/// Whether the end of connecting comes to all, soon and without an error.
inline bool becomeReady(std::initializer_list<transport::Endpoint*> endpoints) {
  const Deadline deadline = Deadline::in(std::chrono::seconds(20));
  while (!deadline.expired()) {
    bool all = true;
    for (transport::Endpoint* const endpoint : endpoints) {
      const auto ready = comesUp(*endpoint);
      if (!ready.ok()) return false;
      all = all && ready.value();
    }
    if (all) return true;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return false;
}
inline bool becomesReady(transport::Endpoint& endpoint) {
  return becomeReady({&endpoint});
}

/// What two processes do in turns, for both ends in this one.
inline void connectEnds(transport::Endpoint& sender, transport::Endpoint& receiver) {
  ASSERT_TRUE(sender.connect(receiver.handle()).ok());
  ASSERT_TRUE(receiver.connect(sender.handle()).ok());
  ASSERT_TRUE(becomeReady({&sender, &receiver}));
}
inline void probeEnds(transport::Endpoint& sender, transport::Endpoint& receiver) {
  ASSERT_TRUE(sender.probeWrite().ok());
  ASSERT_TRUE(receiver.probeWrite().ok());
  EXPECT_TRUE(sender.probeCheck().value());
  EXPECT_TRUE(receiver.probeCheck().value());
}

/// Whether `sends` and `recvs`, both of this process, have the same words for what is read in place, empty ones.
/// `device`: the receiver's.
inline void expectSameOffers(const gpu::Device& device, const device::SendConn& sends, const device::RecvConn& recvs) {
  ASSERT_NE(sends.pull.addresses, nullptr);
  EXPECT_EQ(sends.pull.addresses, recvs.pull.addresses);
  for (int i = 0; i < device::kSteps; ++i) EXPECT_EQ(wordAt(device, &recvs.pull.addresses->word[i]), 0U);
  EXPECT_EQ(recvs.pull.shift, 0) << "one process";
}
inline void expectNothingInPlace(const transport::Endpoint& sender, const transport::Endpoint& receiver) {
  EXPECT_EQ(sendConn(sender).pull.addresses, nullptr);
  EXPECT_EQ(sendConn(sender).pull.window.bytes, 0U);
  EXPECT_EQ(recvConn(receiver).pull.addresses, nullptr);
}

}  // namespace tutti::test
