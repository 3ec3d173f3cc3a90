#include "transport/net/lane/user_registrations.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/log.h"
#include "support/log_capture.h"

namespace tutti::net {
namespace {

/// A network that is told of memory: registrations are numbers.
struct FakeRegistrar final : MemoryRegistrar {
  Result<void*> registerUser(void* data, std::size_t bytes) override {
    ++asked;
    if (refuses) return fail(ncclSystemError, "no more memory regions");
    known[++last] = {reinterpret_cast<std::uintptr_t>(data), bytes};
    return reinterpret_cast<void*>(last);  // NOLINT(performance-no-int-to-ptr)
  }
  void deregister(void* registration) override {
    EXPECT_EQ(known.erase(reinterpret_cast<std::uintptr_t>(registration)), 1U);
  }
  std::string text() const override { return "send to rank 1"; }

  std::map<std::uintptr_t, std::pair<std::uintptr_t, std::size_t>> known;
  std::uintptr_t last = 0;
  int asked = 0;
  bool refuses = false;
};

const void* at(std::uintptr_t address) {
  return reinterpret_cast<const void*>(address);  // NOLINT(performance-no-int-to-ptr)
}

class UserRegistrationsTest : public testing::Test {
 protected:
  std::shared_ptr<transport::RegisteredMemory> memory = std::make_shared<transport::RegisteredMemory>();
  FakeRegistrar network;
  std::optional<UserRegistrations> own{std::in_place, memory, network};
};

TEST_F(UserRegistrationsTest, ARangeIsRegisteredWhenItIsUsedFirst) {
  memory->add(0x1000, 0x3000);
  EXPECT_EQ(network.asked, 0);
  const auto first = own->begin(at(0x1800), 16);
  const auto second = own->begin(at(0x2800), 16);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->registration, second->registration);
  EXPECT_EQ(network.asked, 1);
  EXPECT_EQ(network.known[1], (std::pair<std::uintptr_t, std::size_t>(0x1000, 0x2000)));
  EXPECT_FALSE(own->begin(at(0x2ff8), 16));
}

TEST_F(UserRegistrationsTest, ItIsTakenBackWithTheRange) {
  const std::uint64_t range = memory->add(0x1000, 0x3000);
  const auto use = own->begin(at(0x1000), 16);
  own->end(*use);
  EXPECT_EQ(network.known.size(), 1U);
  memory->remove(range);
  EXPECT_TRUE(network.known.empty());
  EXPECT_FALSE(own->begin(at(0x1000), 16));
}

TEST_F(UserRegistrationsTest, ItIsTakenBackWhenTheLastMessageHasEnded) {
  const std::uint64_t range = memory->add(0x1000, 0x3000);
  const auto first = own->begin(at(0x1000), 16);
  const auto second = own->begin(at(0x1000), 16);
  memory->remove(range);
  EXPECT_EQ(network.known.size(), 1U);
  EXPECT_FALSE(own->begin(at(0x1000), 16)) << "nothing more is sent from there";
  own->end(*first);
  EXPECT_EQ(network.known.size(), 1U);
  own->end(*second);
  EXPECT_TRUE(network.known.empty());
}

TEST_F(UserRegistrationsTest, ARangeThatComesAgainIsRegisteredAgain) {
  memory->remove(memory->add(0x1000, 0x3000));
  const std::uint64_t old = memory->add(0x1000, 0x3000);
  const auto use = own->begin(at(0x1000), 16);
  memory->remove(old);
  memory->add(0x1000, 0x3000);
  const auto next = own->begin(at(0x1000), 16);
  ASSERT_TRUE(next);
  EXPECT_NE(next->registration, use->registration);
  own->end(*use);
  EXPECT_EQ(network.known.size(), 1U);
  EXPECT_TRUE(network.known.contains(reinterpret_cast<std::uintptr_t>(next->registration)));
}

TEST_F(UserRegistrationsTest, ARefusalIsToldOnceAndRemembered) {
  memory->add(0x1000, 0x3000);
  network.refuses = true;
  test::expectLog("the network does not take the 8192 bytes at 0x1000 that are registered");
  EXPECT_FALSE(own->begin(at(0x1000), 16));
  EXPECT_FALSE(own->begin(at(0x1000), 16));
  EXPECT_EQ(network.asked, 1);
  EXPECT_FALSE(memory->covers(0x1000, 16));
  FakeRegistrar other;
  UserRegistrations another(memory, other);
  EXPECT_FALSE(another.begin(at(0x1000), 16));
  EXPECT_EQ(other.asked, 0) << "of the same network";
}

TEST_F(UserRegistrationsTest, TheEndTakesBackAll) {
  memory->add(0x1000, 0x3000);
  memory->add(0x8000, 0x9000);
  EXPECT_TRUE(own->begin(at(0x1000), 16));
  EXPECT_TRUE(own->begin(at(0x8000), 16));
  EXPECT_EQ(network.known.size(), 2U);
  own.reset();
  EXPECT_TRUE(network.known.empty());
  memory->remove(1);
}

}  // namespace
}  // namespace tutti::net
