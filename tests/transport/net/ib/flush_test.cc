#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "support/log_capture.h"
#include "transport/net/ib/ib_lines.h"
#include "transport/net/ib/ib_pair.h"

namespace tutti::net::ib {
namespace {

using namespace test;

class IbFlush : public IbPairTest {
 protected:
  void SetUp() override {
    auto nics = fourNics();
    for (FakeNic& nic : nics) nic.dmaBufs = true;
    plug(nics);
  }
  plugin::NetBuffer place(IbBuffer& buffer, std::size_t bytes) { return buffer.place(bytes); }
  void* flush(const plugin::NetBuffer& buffer) {
    auto request = b->net->iflush(pair->receiver, {&buffer, 1});
    EXPECT_TRUE(request.ok());
    return request.ok() ? request.value() : nullptr;
  }
  static std::size_t reads() {
    std::size_t count = 0;
    for (const FakeWork& one : tuttiFakeVerbs()->work()) count += one.opcode == IBV_WR_RDMA_READ ? 1 : 0;
    return count;
  }
};

TEST_F(IbFlush, ReadsAByteThroughEveryPort) {
  connect(verbsParams(), verbsParams(), false, true);
  IbBuffer& to = incoming(100);
  void* const request = flush(to.place(100));
  ASSERT_NE(request, nullptr);
  EXPECT_TRUE(until([&] { return IbPair::done(*b->net, request); }));
  EXPECT_EQ(reads(), 2u);
  EXPECT_EQ(tuttiFakeVerbs()->work().back().bytes, 1u);
}

TEST_F(IbFlush, IsDoneWhenAllReadsAreBack) {
  connect(verbsParams(), verbsParams(), false, true);
  IbBuffer& to = incoming(100);
  tuttiFakeVerbs()->hold(true);
  void* const request = flush(to.place(100));
  EXPECT_FALSE(IbPair::done(*b->net, request));
  EXPECT_TRUE(tuttiFakeVerbs()->deliverOne(true));
  EXPECT_FALSE(IbPair::done(*b->net, request));
  EXPECT_TRUE(tuttiFakeVerbs()->deliverOne(true));
  EXPECT_TRUE(until([&] { return IbPair::done(*b->net, request); }));
}

TEST_F(IbFlush, ReadsOfTheLastMessageThatIsNotEmpty) {
  connect();
  IbBuffer& to = incoming(100);
  const std::vector<plugin::NetBuffer> all{to.place(0), to.place(10), {.data = nullptr, .bytes = 0}};
  auto request = b->net->iflush(pair->receiver, all);
  ASSERT_TRUE(request.ok() && request.value() != nullptr);
  EXPECT_TRUE(until([&] { return IbPair::done(*b->net, request.value()); }));
  EXPECT_EQ(reads(), 1u);
}

TEST_F(IbFlush, HasNothingToDoForEmptyMessages) {
  connect();
  EXPECT_EQ(flush(incoming(100).place(0)), nullptr);
  EXPECT_EQ(reads(), 0u);
}

TEST_F(IbFlush, IsNotWantedWhereGpusAreNotReachedOrItIsSwitchedOff) {
  Params params = verbsParams();
  params.topology.gdrFlushDisable = true;
  connect(params);
  EXPECT_EQ(flush(incoming(100).place(100)), nullptr);
  in.clear();
  pair.reset();
  a.reset();
  b.reset();
  plug(fourNics());
  connect();
  EXPECT_EQ(flush(incoming(100).place(100)), nullptr);
}

TEST_F(IbFlush, CarriesMessagesMeanwhile) {
  connect();
  IbBuffer& to = incoming(100);
  for (unsigned i = 1; i < 200; ++i) {
    exchange(100, i);
    void* const request = flush(to.place(100));
    EXPECT_TRUE(until([&] { return IbPair::done(*b->net, request); }));
  }
}

TEST_F(IbFlush, NamesThePortWhoseFlushFails) {
  expectLog("A flush of what b0:1 has written failed with status=IBV_WC_REM_ACCESS_ERR(10)");
  connect();
  tuttiFakeVerbs()->failWork(IBV_WR_RDMA_READ, 1, IBV_WC_REM_ACCESS_ERR);
  void* const request = flush(incoming(100).place(100));
  Status status;
  EXPECT_TRUE(until([&] {
    status = b->net->test(request, {}).status();
    return !status.ok();
  }));
  EXPECT_EQ(status.code(), ncclSystemError);
}

TEST_F(IbFlush, ReachesMemoryThatCameAsADmaBuf) {
  connect();
  const Fd file(::memfd_create("gpu", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(file.get(), 8192), 0);
  void* const gpu = ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  void* const known = b->net->registerDmaBuf(pair->receiver, gpu, 8192, 0, file.get()).value();
  IbBuffer& from = outgoing(5000);
  const plugin::NetBuffer place{.data = gpu, .bytes = 8192, .registration = known};
  void* const received = pair->recv(place);
  pair->finishSend(pair->send(from.place(5000)));
  EXPECT_EQ(pair->finishRecv(received), std::vector<int>{5000});
  void* const request = flush(place);
  EXPECT_TRUE(until([&] { return IbPair::done(*b->net, request); }));
  EXPECT_EQ(std::memcmp(gpu, from.data.data(), 5000), 0);
  EXPECT_TRUE(b->net->deregisterMemory(pair->receiver, known).ok());
  ::munmap(gpu, 8192);
}

/// Null would say that all is flushed already.
TEST_F(IbFlush, KeepsEveryFlushHoweverManyAreUnderWay) {
  connect();
  IbBuffer& to = incoming(100);
  tuttiFakeVerbs()->hold(true);
  std::vector<void*> requests;
  for (int i = 0; i < 256; ++i) {
    requests.push_back(flush(to.place(100)));
    ASSERT_NE(requests.back(), nullptr) << i;
  }
  tuttiFakeVerbs()->hold(false);
  for (void* request : requests) EXPECT_TRUE(until([&] { return IbPair::done(*b->net, request); }));
}

TEST_F(IbFlush, NamesWhatIsOpenWhereThereIsNoRoomForAnother) {
  allowLog("there is no room for another flush");
  connect();
  const plugin::NetBuffer place = incoming(100).place(100);
  tuttiFakeVerbs()->hold(true);
  for (int i = 0; i < 256; ++i) ASSERT_NE(flush(place), nullptr) << i;
  IbLines lines;
  EXPECT_EQ(b->net->iflush(pair->receiver, {&place, 1}).status().code(), ncclInternalError);
  const std::vector<std::string> one{
      "ERROR NET/IB : a rank of a test: there is no room for another flush of what b0:1 has written; open: 256 "
      "flushes, which have to be tested first"};
  EXPECT_EQ(lines.take(), one);
}

TEST_F(IbFlush, NamesOneThatIsRefused) {
  allowLog("Call to ibv_post_send failed");
  connect();
  const plugin::NetBuffer place = incoming(100).place(100);
  IbLines lines;
  tuttiFakeVerbs()->failCall("ibv_post_send", 1, ENODEV);
  EXPECT_EQ(b->net->iflush(pair->receiver, {&place, 1}).status().code(), ncclSystemError);
  const std::vector<std::string> one{
      "ERROR NET/IB : a rank of a test: Call to ibv_post_send failed with error No such device (19), to flush what "
      "b0:1 "
      "has written. The NIC has failed, was reset, or was taken away: look at dmesg"};
  EXPECT_EQ(lines.take(), one);
}

TEST_F(IbFlush, EndsWithItsConnectionBeforeItsMemory) {
  connect();
  IbBuffer& to = incoming(100);
  tuttiFakeVerbs()->hold(true);
  flush(to.place(100));
  in.clear();
  pair->closeRecv();
}

}  // namespace
}  // namespace tutti::net::ib
