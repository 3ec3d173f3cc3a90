#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "softgpu/cuda_fixture.h"

namespace tutti::softgpu::test {
namespace {

class Graphs : public CudaTest {};

TEST_F(Graphs, CapturedWorkRunsOnlyWhenLaunched) {
  std::uint32_t* data = words();
  EXPECT_CU(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  EXPECT_CU(launch("Add", 1, 32, stream_, {data, nullptr, 0, 2}));
  EXPECT_CU(cuMemcpyDtoDAsync(address(data + 64), address(data), 128, stream_));
  CUgraph graph = nullptr;
  EXPECT_CU(cuStreamEndCapture(stream_, &graph));
  EXPECT_EQ(data[0], 0u);
  CUgraphExec exec = nullptr;
  EXPECT_CU(cuGraphInstantiate(&exec, graph, 0));
  EXPECT_CU(cuGraphDestroy(graph));
  for (int i = 0; i < 3; ++i) EXPECT_CU(cuGraphLaunch(exec, stream_));
  EXPECT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(data[64 + 31], 6u);
  EXPECT_CU(cuGraphExecDestroy(exec));
}

TEST_F(Graphs, EventsBringOtherStreamsIntoTheCapture) {
  std::uint32_t* data = words();
  CUstream side = nullptr;
  CUevent fork = nullptr;
  CUevent join = nullptr;
  EXPECT_CU(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
  EXPECT_CU(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
  EXPECT_CU(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
  EXPECT_CU(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_CU(cuEventRecord(fork, stream_));
  EXPECT_CU(cuStreamWaitEvent(side, fork, 0));
  EXPECT_CU(launch("Wait", 1, 1, side, {data + 64, data, 0, 5}));
  EXPECT_CU(launch("Write", 1, 1, stream_, {data, nullptr, 0, 5}));
  EXPECT_CU(cuEventRecord(join, side));
  EXPECT_CU(cuStreamWaitEvent(stream_, join, 0));
  CUgraph graph = nullptr;
  EXPECT_CU(cuStreamEndCapture(stream_, &graph));
  std::size_t roots = 0;
  EXPECT_CU(cuGraphGetRootNodes(graph, nullptr, &roots));
  EXPECT_EQ(roots, 2u);
  CUgraphExec exec = nullptr;
  EXPECT_CU(cuGraphInstantiate(&exec, graph, 0));
  EXPECT_CU(cuGraphLaunch(exec, stream_));
  EXPECT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(data[64], 5u);
  EXPECT_CU(cuGraphExecDestroy(exec));
  EXPECT_CU(cuGraphDestroy(graph));
  EXPECT_CU(cuEventDestroy(fork));
  EXPECT_CU(cuEventDestroy(join));
  EXPECT_CU(cuStreamDestroy(side));
}

TEST_F(Graphs, CaptureInfoNamesTheGraphAndItsEnd) {
  EXPECT_CU(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_CU(launch("Empty", 1, 32, stream_, {}));
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* after = nullptr;
  const CUgraphEdgeData* edges = nullptr;
  std::size_t count = 0;
  EXPECT_CU(cuStreamGetCaptureInfo(stream_, &status, &id, &graph, &after, &edges, &count));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_EQ(count, 1u);
  CUgraphNode host = nullptr;
  const CUDA_HOST_NODE_PARAMS call = {[](void*) {}, nullptr};
  EXPECT_CU(cuGraphAddHostNode(&host, graph, after, count, &call));
  EXPECT_CU(cuStreamUpdateCaptureDependencies(stream_, &host, nullptr, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  CUgraph ended = nullptr;
  EXPECT_CU(cuStreamEndCapture(stream_, &ended));
  EXPECT_EQ(ended, graph);
  EXPECT_CU(cuGraphDestroy(graph));
}

TEST_F(Graphs, SynchronizingInvalidatesTheCapture) {
  EXPECT_CU(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_CU_ERROR(cuStreamSynchronize(stream_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CUgraph graph = nullptr;
  EXPECT_CU_ERROR(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(graph, nullptr);
}

TEST_F(Graphs, NoneIsMadeReadyWhileTheThreadCaptures) {
  CUgraph graph = nullptr;
  EXPECT_CU(cuGraphCreate(&graph, 0));
  EXPECT_CU(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  CUgraphExec exec = nullptr;
  EXPECT_CU_ERROR(cuGraphInstantiate(&exec, graph, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CUgraph captured = nullptr;
  EXPECT_CU_ERROR(cuStreamEndCapture(stream_, &captured), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_CU(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_CU(cuGraphInstantiate(&exec, graph, 0));
  EXPECT_CU(cuStreamEndCapture(stream_, &captured));
  EXPECT_CU(cuGraphExecDestroy(exec));
  EXPECT_CU(cuGraphDestroy(captured));
  EXPECT_CU(cuGraphDestroy(graph));
}

/// What a user object stands for: notes its destruction, which takes a lock as an application's might.
struct Owned {
  std::mutex mutex;
  std::atomic<bool> destroyed{false};
  std::thread::id destroyer;

  CUuserObject makeObject() {
    CUuserObject object = nullptr;
    const auto destroy = [](void* self) {
      auto& owned = *static_cast<Owned*>(self);
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(2);
      bool locked = owned.mutex.try_lock();
      while (!locked && std::chrono::steady_clock::now() < deadline) {
        std::this_thread::yield();
        locked = owned.mutex.try_lock();
      }
      owned.destroyer = std::this_thread::get_id();
      if (locked) owned.mutex.unlock();
      owned.destroyed = true;  // the last word: now the test may end, and the mutex with it
    };
    EXPECT_CU(cuUserObjectCreate(&object, this, destroy, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    return object;
  }
  /// Waits for the destruction.
  bool isDestroyed() const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!destroyed && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    return destroyed;
  }
};

TEST_F(Graphs, UserObjectsLiveAsLongAsInstances) {
  Owned owned;
  CUuserObject object = owned.makeObject();
  CUgraph graph = nullptr;
  EXPECT_CU(cuGraphCreate(&graph, 0));
  EXPECT_CU(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
  CUgraphExec exec = nullptr;
  EXPECT_CU(cuGraphInstantiate(&exec, graph, 0));
  EXPECT_CU(cuGraphDestroy(graph));
  EXPECT_FALSE(owned.destroyed);
  EXPECT_CU(cuGraphExecDestroy(exec));
  EXPECT_TRUE(owned.isDestroyed());
}

TEST_F(Graphs, DestructorsRunOnAThreadOfTheirOwnWhateverTheCallerHolds) {
  Owned released;
  CUuserObject object = released.makeObject();
  {
    const std::lock_guard<std::mutex> lock(released.mutex);
    EXPECT_CU(cuUserObjectRelease(object, 1));
  }
  ASSERT_TRUE(released.isDestroyed());
  EXPECT_NE(released.destroyer, std::this_thread::get_id());

  // The last reference goes with a replay, which a thread that waits for it may carry out.
  std::uint32_t* data = words();
  Owned replayed;
  object = replayed.makeObject();
  EXPECT_CU(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_CU(launch("Add", 1, 32, stream_, {data, nullptr, 0, 2}));
  CUgraph graph = nullptr;
  EXPECT_CU(cuStreamEndCapture(stream_, &graph));
  EXPECT_CU(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
  CUgraphExec exec = nullptr;
  EXPECT_CU(cuGraphInstantiate(&exec, graph, 0));
  EXPECT_CU(cuGraphDestroy(graph));
  {
    const std::lock_guard<std::mutex> lock(replayed.mutex);
    EXPECT_CU(cuGraphLaunch(exec, stream_));
    EXPECT_CU(cuGraphExecDestroy(exec));
    EXPECT_CU(cuStreamSynchronize(stream_));
  }
  ASSERT_TRUE(replayed.isDestroyed());
  EXPECT_EQ(replayed.destroyer, released.destroyer);
}

TEST_F(Graphs, EventsOfACaptureDoNotKeepTheGraph) {
  Owned owned;
  CUuserObject object = owned.makeObject();
  CUevent event = nullptr;
  EXPECT_CU(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  EXPECT_CU(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_CU(cuEventRecord(event, stream_));
  CUgraph graph = nullptr;
  EXPECT_CU(cuStreamEndCapture(stream_, &graph));
  EXPECT_CU(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
  EXPECT_CU(cuGraphDestroy(graph));
  EXPECT_TRUE(owned.isDestroyed());
  EXPECT_CU(cuEventDestroy(event));
}

}  // namespace
}  // namespace tutti::softgpu::test
