#include <cerrno>

#include "transport/net/ib/failover_fixture.h"

namespace tutti::net::ib {
namespace {

using namespace test;

/// What queue pairs use of the enhanced connection establishment.
class IbEce : public IbFailover {
 protected:
  static std::vector<FakeNic> nicsWith(std::uint32_t sending, std::uint32_t receiving) {
    auto nics = eightNics();
    for (FakeNic& nic : nics) nic.ece = nic.name[0] == 'a' ? sending : receiving;
    return nics;
  }
  void connectWith(std::uint32_t sending, std::uint32_t receiving, const Params& sends = verbsParams(),
                   const Params& receives = verbsParams()) {
    pair.reset();
    a.reset();
    b.reset();
    plug(nicsWith(sending, receiving));
    fuse(sends, receives);
  }
  static void expectUsed(std::uint32_t options, std::initializer_list<const char*> nics = {"a0", "a1", "b0", "b1"}) {
    for (const char* nic : nics) EXPECT_EQ(tuttiFakeVerbs()->ece(nic), std::vector<std::uint32_t>{options}) << nic;
  }
};

TEST_F(IbEce, UsesWhatBothNicsHave) {
  connectWith(0x35, 0x17);
  expectUsed(0x15);
  exchange(1000, 1);
}

TEST_F(IbEce, DoesWithoutWhereANicHasNone) {
  for (const auto& [sending, receiving] : {std::pair{0x35u, 0u}, {0u, 0x17u}, {0u, 0u}}) {
    connectWith(sending, receiving);
    expectUsed(0);
    exchange(1000, 1);
  }
}

TEST_F(IbEce, DoesWithoutWhereEitherEndIsTold) {
  Params off = verbsParams();
  off.ib.eceEnable = false;
  for (const auto& [sending, receiving] : {std::pair{off, verbsParams()}, {verbsParams(), off}}) {
    connectWith(0x35, 0x17, sending, receiving);
    expectUsed(0);
    exchange(1000, 1);
  }
}

TEST_F(IbEce, UsesTheSameAfterAPortHasFailed) {
  allowLog("goes on without");
  connectWith(0x35, 0x17, with(), with());
  IbFlow flow(*pair, {});
  down("a1");
  runUntilBothSaid(flow, "goes on without");
  flow.finish();
  expectUsed(0x15, {"a0", "b0"});
}

TEST_F(IbEce, EndsAConnectThatTheNicRefuses) {
  expectLog("Call to ibv_set_ece failed with error");
  allowLog("before its queue pairs stood");
  plug(nicsWith(0x35, 0x35));
  a = std::make_unique<IbSide>("a", *sysfs);
  b = std::make_unique<IbSide>("b", *sysfs);
  tuttiFakeVerbs()->failCall("ibv_set_ece", 1, EINVAL);
  plugin::NetHandle handle{};
  void* const listener = b->net->listen(0, handle).value();
  Status status;
  EXPECT_TRUE(until([&] {
    a->net->connect(0, handle).status().ignore();
    status = b->net->accept(listener).status();
    return !status.ok();
  }));
  EXPECT_EQ(status.code(), ncclSystemError);
  a->net->abandonConnect(handle);
  EXPECT_TRUE(b->net->closeListen(listener).ok());
}

}  // namespace
}  // namespace tutti::net::ib
