#include "comm/launch/graph_refs.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/clock.h"
#include "comm/graph.h"
#include "gpu/context.h"
#include "gpu/fake_driver.h"
#include "support/log_capture.h"

namespace tutti::comm {
namespace {

struct Deferred {
  explicit Deferred(bool& gone) : gone_(gone) {}
  Deferred(const Deferred&) = delete;
  ~Deferred() { gone_ = true; }
  bool& gone_;
};

class GraphEstates : public testing::Test {
 protected:
  void SetUp() override {
    device = gpu::Device::create(*gpu::loadDriver().value(), 0).value();
    guard = std::make_unique<gpu::ContextGuard>(device->enter().value());
  }
  CUgraph newGraph() const {
    CUgraph graph = nullptr;
    EXPECT_EQ(DRIVER_CALL(cuGraphCreate)(&graph, 0), CUDA_SUCCESS);
    return graph;
  }
  /// The driver tells of a graph's end on a thread of its own, some time after.
  bool allGone() const {
    const Deadline deadline = Deadline::in(std::chrono::seconds(20));
    while (holds.any() && !deadline.expired()) std::this_thread::yield();
    return !holds.any();
  }
  std::unique_ptr<gpu::Device> device;
  std::unique_ptr<gpu::ContextGuard> guard;
  GraphRefs holds;
};

TEST_F(GraphEstates, WithoutGraphsTheEstateStaysWithItsOwner) {
  bool gone = false;
  EXPECT_FALSE(holds.any());
  {
    const auto deferred = std::make_shared<Deferred>(gone);
    EXPECT_FALSE(holds.deferFree(deferred));
    EXPECT_EQ(deferred.use_count(), 1);
  }
  EXPECT_TRUE(gone);
}

TEST_F(GraphEstates, TheLastOfGraphAndInstanceFreesTheEstate) {
  bool gone = false;
  CUgraph graph = newGraph();
  ASSERT_TRUE(holds.addTo(*device, graph).ok());
  CUgraphExec exec = nullptr;
  ASSERT_EQ(DRIVER_CALL(cuGraphInstantiate)(&exec, graph, 0), CUDA_SUCCESS);
  EXPECT_TRUE(holds.deferFree(std::make_shared<Deferred>(gone)));
  EXPECT_EQ(DRIVER_CALL(cuGraphDestroy)(graph), CUDA_SUCCESS);
  EXPECT_TRUE(holds.any());
  GraphRefs::takeAbandoned();
  EXPECT_FALSE(gone);
  EXPECT_EQ(DRIVER_CALL(cuGraphExecDestroy)(exec), CUDA_SUCCESS);
  EXPECT_TRUE(allGone());
  EXPECT_FALSE(gone) << "not on the driver's thread";
  const Deadline deadline = Deadline::in(std::chrono::seconds(20));
  for (; !gone && !deadline.expired(); std::this_thread::yield()) GraphRefs::takeAbandoned();
  EXPECT_TRUE(gone);
}

TEST_F(GraphEstates, WhatAGraphKeepsEndsWithItsLastInstance) {
  const auto kept = std::make_shared<int>();
  CUgraph graph = newGraph();
  ASSERT_TRUE(holds.addTo(*device, graph, kept).ok());
  CUgraphExec exec = nullptr;
  ASSERT_EQ(DRIVER_CALL(cuGraphInstantiate)(&exec, graph, 0), CUDA_SUCCESS);
  EXPECT_EQ(DRIVER_CALL(cuGraphDestroy)(graph), CUDA_SUCCESS);
  EXPECT_GT(kept.use_count(), 1);
  EXPECT_EQ(DRIVER_CALL(cuGraphExecDestroy)(exec), CUDA_SUCCESS);
  const Deadline deadline = Deadline::in(std::chrono::seconds(20));
  while (kept.use_count() > 1 && !deadline.expired()) std::this_thread::yield();
  EXPECT_EQ(kept.use_count(), 1);
}

TEST_F(GraphEstates, EveryGraphCounts) {
  CUgraph first = newGraph();
  CUgraph second = newGraph();
  ASSERT_TRUE(holds.addTo(*device, first).ok());
  ASSERT_TRUE(holds.addTo(*device, second).ok());
  EXPECT_EQ(DRIVER_CALL(cuGraphDestroy)(second), CUDA_SUCCESS);
  EXPECT_TRUE(holds.any());
  EXPECT_EQ(DRIVER_CALL(cuGraphDestroy)(first), CUDA_SUCCESS);
  EXPECT_TRUE(allGone());
}

TEST_F(GraphEstates, AFailureLeavesNoCountBehind) {
  test::expectLog("in cuGraphRetainUserObject");
  CUgraph graph = newGraph();
  EXPECT_EQ(DRIVER_CALL(cuGraphDestroy)(graph), CUDA_SUCCESS);
  EXPECT_EQ(holds.addTo(*device, graph).code(), ncclUnhandledCudaError);
  EXPECT_TRUE(allGone());
}

TEST_F(GraphEstates, AnOldDriverIsNamed) {
  test::expectLog("lacks user objects");
  gpu::Driver old = device->driver();
  old.cuUserObjectCreate = nullptr;
  const auto aged = gpu::Device::create(old, 0);
  ASSERT_TRUE(aged.ok());
  EXPECT_EQ(holds.addTo(*aged.value(), newGraph()).code(), ncclInvalidUsage);
}

}  // namespace
}  // namespace tutti::comm
