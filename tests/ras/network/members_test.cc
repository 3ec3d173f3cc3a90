#include "ras/network/members.h"

#include <gtest/gtest.h>

#include <vector>

namespace tutti::ras {
namespace {

Member memberAt(std::uint16_t port) {
  Member member;
  member.key[0] = static_cast<std::byte>(port);
  member.facts.id = port;
  member.facts.address = Address::loopback(AF_INET, port);
  return member;
}

std::vector<ProcessId> idsOf(const std::vector<const Member*>& members) {
  std::vector<ProcessId> ids;
  for (const Member* const member : members) ids.push_back(member->facts.id);
  return ids;
}

using Ids = std::vector<ProcessId>;

TEST(Members, SuccessorsBeginBehindOneselfAndGoRound) {
  Members members(memberAt(20));
  for (const std::uint16_t port : {10, 40, 30}) members.merge(memberAt(port));
  EXPECT_EQ(idsOf(members.successors()), (Ids{30, 40, 10}));
  EXPECT_EQ(idsOf(members.all()), (Ids{10, 20, 30, 40}));
}

TEST(Members, LeaveTheDeadOut) {
  Members members(memberAt(20));
  Member dead = memberAt(30);
  members.merge(dead);
  members.merge(memberAt(40));
  dead.facts.state = ProcessState::Dead;
  const auto change = members.merge(dead);
  ASSERT_TRUE(change.has_value());
  EXPECT_TRUE(change->state);
  EXPECT_EQ(idsOf(members.successors()), (Ids{40}));
}

TEST(Members, StatesOnlyGetWorse) {
  Members members(memberAt(20));
  Member other = memberAt(30);
  other.facts.state = ProcessState::Left;
  members.merge(other);
  other.facts.state = ProcessState::Alive;
  EXPECT_FALSE(members.merge(other).has_value());
  other.facts.state = ProcessState::Dead;
  EXPECT_FALSE(members.merge(other).has_value());
  EXPECT_EQ(members.find(30)->facts.state, ProcessState::Left);
}

TEST(Members, NobodyIsToldThatHeIsDeadHimself) {
  Members members(memberAt(20));
  Member self = memberAt(20);
  self.facts.state = ProcessState::Dead;
  EXPECT_FALSE(members.merge(self).has_value());
  EXPECT_EQ(members.self().facts.state, ProcessState::Alive);
}

TEST(Members, HashesAreEqualOnceEverythingWasTold) {
  Members a(memberAt(10));
  Members b(memberAt(20));
  EXPECT_NE(a.hash(), b.hash());
  a.merge(memberAt(20));
  b.merge(memberAt(10));
  EXPECT_EQ(a.hash(), b.hash());
  Member more = memberAt(10);
  more.facts.cudaDevices = 4;
  b.merge(more);
  EXPECT_NE(a.hash(), b.hash());
  a.merge(more);
  EXPECT_EQ(a.hash(), b.hash());
}

}  // namespace
}  // namespace tutti::ras
