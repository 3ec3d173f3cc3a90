// Steps whose content lies in the application's memory.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "support/log_capture.h"
#include "transport/collnet/collnet_world.h"

namespace tutti::test {
namespace {

constexpr std::uint64_t kAreaBytes = 8192;
constexpr int kPoison = 0xa5;

/// A world whose nodes' applications have a buffer to send from and one to receive into.
class RegisteredSteps : public testing::Test {
 protected:
  struct Buffers {
    std::vector<std::byte> send = std::vector<std::byte>(4 * kAreaBytes), recv = send;
  };

  void begin(CollNetWorld::Options options) {
    options.registered = memory_;
    buffers_.resize(static_cast<std::size_t>(options.nodes));
    world_ = std::make_unique<CollNetWorld>(options);
    world_->begin({kDirect});
  }
  /// All buffers of all nodes.
  void registerAll() {
    for (const Buffers& buffers : buffers_) {
      for (const auto* buffer : {&buffers.send, &buffers.recv}) {
        const auto address = reinterpret_cast<std::uintptr_t>(buffer->data());
        ranges_.push_back(memory_->add(address, address + buffer->size()));
      }
    }
  }
  void removeAll() {
    for (const std::uint64_t id : ranges_) memory_->remove(id);
    ranges_.clear();
  }

  CollNetWorld::Node& node(std::size_t n) { return world_->nodes[n]; }
  /// Content in the application's memory, rubbish in the slots.
  void fill(std::size_t n, collnet::CallWords words) {
    const collnet::StepRange sent = collnet::StepCall(words).sent(n);
    Buffers& buffers = buffers_[n];
    std::memset(buffers.recv.data(), kPoison, buffers.recv.size());
    for (std::uint64_t at = 0; at < sent.bytes; at += 4) {
      const std::int32_t value = valueAt(n, (words.begin + sent.offset + at) / 4);
      std::memcpy(buffers.send.data() + at, &value, 4);
    }
    auto& lanes = node(n).sets[0];
    std::memset(lanes[0].sendSlot(), kPoison, kAreaBytes);
    std::memset(const_cast<std::byte*>(lanes[0].recvSlot()), kPoison, kAreaBytes);
    words.sendFrom = reinterpret_cast<std::uint64_t>(buffers.send.data());
    words.recvTo = reinterpret_cast<std::uint64_t>(buffers.recv.data());
    lanes[0].say(words);
    for (LaneKernel& lane : lanes) lane.fill();
  }
  /// A step of all nodes, of which those with an odd number use their slots if `mixed`.
  void step(const collnet::CallWords& words, bool mixed = false) {
    const auto inSlots = [mixed](std::size_t n) { return mixed && n % 2 == 1; };
    for (std::size_t n = 0; n < buffers_.size(); ++n) {
      if (inSlots(n)) CollNetWorld::fill(node(n), n, 0, words);
      if (!inSlots(n)) fill(n, words);
    }
    ASSERT_TRUE(until([&] {
      world_->advance();
      for (std::size_t n = 0; n < buffers_.size(); ++n) {
        if (!node(n).sets[0][0].mayRead()) return false;
      }
      return true;
    }));
    for (std::size_t n = 0; n < buffers_.size(); ++n) {
      if (inSlots(n)) world_->read(n, 0, words);
      if (!inSlots(n)) expectCame(n, words);
    }
  }
  void expectCame(std::size_t n, const collnet::CallWords& words) {
    const collnet::StepRange received = collnet::StepCall(words).received(n);
    EXPECT_EQ(world_->wrongIn(buffers_[n].recv.data(), n, words, received), 0u);
    EXPECT_EQ(buffers_[n].recv[received.bytes], std::byte{kPoison}) << "more than was received";
    auto& lanes = node(n).sets[0];
    for (std::size_t at = 0; at < kAreaBytes && slotsStay_; ++at) {
      ASSERT_EQ(lanes[0].recvSlot()[at], std::byte{kPoison}) << "it went through the slots";
    }
    for (LaneKernel& lane : lanes) lane.free();
  }

  std::shared_ptr<transport::RegisteredMemory> memory_ = std::make_shared<transport::RegisteredMemory>();
  std::vector<Buffers> buffers_;
  std::vector<std::uint64_t> ranges_;
  std::unique_ptr<CollNetWorld> world_;
  bool slotsStay_ = true;  ///< what the network knows does not go through them
};

TEST_F(RegisteredSteps, AreSentFromTheApplicationsMemoryAndReceivedThere) {
  for (const std::size_t most : {std::size_t{1} << 20, std::size_t{5000}}) {
    for (const int nodes : {1, 2, 3}) {
      begin({.nodes = nodes, .knobs = {{.mostBytes = most}}});
      registerAll();
      for (const bool mixed : {false, true}) {
        for (int round = 0; round < 2; ++round) {
          for (const auto& words : someSteps(static_cast<std::uint64_t>(nodes), kAreaBytes)) step(words, mixed);
        }
      }
      world_->expectSameCalls();
      removeAll();
      world_.reset();
    }
  }
}

TEST_F(RegisteredSteps, OfMemoryThatIsNotRegisteredGoThroughTheSlots) {
  begin({.nodes = 3});
  slotsStay_ = false;
  for (const auto& words : someSteps(3, kAreaBytes)) step(words);
}

TEST_F(RegisteredSteps, OfMemoryThatTheNetworkRefusesGoThroughTheSlots) {
  for (int buffer = 0; buffer < 2; ++buffer) expectLog("the network does not take the 32768 bytes at 0x");
  begin({.nodes = 2, .knobs = {{.failing = "registerMemory", .failAfter = 2}, {}}});  // the slots it takes
  registerAll();
  slotsStay_ = false;
  for (const auto& words : someSteps(2, kAreaBytes)) step(words);
  removeAll();
}

TEST_F(RegisteredSteps, EndARegistrationOnlyWhenTheyAreOver) {
  begin({.nodes = 2, .knobs = {{.neverEnds = true}}});
  const std::size_t before = world_->fabric->leftOpen();
  registerAll();
  for (std::size_t n = 0; n < 2; ++n) fill(n, wordsFor(CollNetFunc::AllReduce, 4096));
  ASSERT_TRUE(until([&] {
    world_->advance();
    return world_->fabric->leftOpen() == before + 4;
  })) << "two buffers of two nodes";
  removeAll();
  EXPECT_EQ(world_->fabric->leftOpen(), before + 4) << "the network is at work there";
  for (auto& one : world_->nodes) one.network->knobs().neverEnds = false;
  EXPECT_TRUE(until([&] {
    world_->advance();
    return world_->fabric->leftOpen() == before;
  }));
  for (std::size_t n = 0; n < 2; ++n) expectCame(n, wordsFor(CollNetFunc::AllReduce, 4096));
  slotsStay_ = false;
  step(wordsFor(CollNetFunc::AllReduce, 4096));
}

TEST_F(RegisteredSteps, AreFlushedWhereTheyWereReceived) {
  begin({.nodes = 2, .place = {.onDevice = true, .flushes = true}});
  registerAll();
  step(wordsFor(CollNetFunc::AllReduce, 4096));
  EXPECT_EQ(node(0).network->flushedBytes, 4096u);
  removeAll();
}

}  // namespace
}  // namespace tutti::test
