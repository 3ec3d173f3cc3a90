// Two ranks on devices of the fake driver, and handles of connections with one thing wrong.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>

#include "gpu/fake_driver.h"
#include "support/log_capture.h"
#include "transport/common/peers.h"
#include "transport/common/transport.h"

namespace tutti::test {

class FakeRanks : public testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 2; ++i) {
      auto device = gpu::Device::create(fake.driver(), i);
      ASSERT_TRUE(device.ok());
      devices[i] = std::move(device).value();
      ranks[i] = peerOn(*devices[i], i);
    }
  }
  FakeDriver fake;
  std::unique_ptr<gpu::Device> devices[2];
  topo::PeerInfo ranks[2];
};

/// A handle that holds a `Wire`, after `change(wire)`.
template <class Wire, class Change>
transport::ConnectHandle changedHandle(transport::ConnectHandle handle, Change&& change) {
  Wire wire;
  std::memcpy(&wire, handle.bytes.data(), sizeof(wire));
  change(wire);
  std::memcpy(handle.bytes.data(), &wire, sizeof(wire));
  return handle;
}

/// An end at rank 0 takes none of the handles for its peer's. `name`: of the transport.
inline void expectRefused(transport::Endpoint& endpoint, const std::string& name,
                          std::initializer_list<transport::ConnectHandle> handles) {
  for (const transport::ConnectHandle& handle : handles) {
    expectLog(name +
              " handle does not belong to channel 3 of rank 0 (host node7, device 0) with rank 1 (host node7, "
              "device 1)");
    EXPECT_EQ(endpoint.connect(handle).code(), ncclInternalError);
  }
}

/// It says what is wrong with a handle of an end with other buffers.
inline void expectOtherSizesNamed(transport::Endpoint& endpoint, const transport::ConnectHandle& handle) {
  expectLog("Buffer sizes differ on channel 3");
  EXPECT_EQ(endpoint.connect(handle).code(), ncclInvalidUsage);
  EXPECT_NE(capturedText().find("NCCL_BUFFSIZE"), std::string::npos);
}

/// Its self-test is refused, twice, with these words.
inline void expectProbesRefused(transport::Endpoint& endpoint, const std::string& words) {
  expectLog(words);
  EXPECT_EQ(endpoint.probeWrite().code(), ncclInternalError);
  expectLog(words);
  EXPECT_EQ(endpoint.probeCheck().status().code(), ncclInternalError);
}

}  // namespace tutti::test
