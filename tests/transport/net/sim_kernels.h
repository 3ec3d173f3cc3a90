// Kernels that are told what to do step by step, and the memory of one end, without a GPU.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "device/prims/prims_ll.h"
#include "device/prims/prims_ll128.h"
#include "device/work.h"
#include "transport/common/conn_views.h"
#include "transport/net/fake_net.h"
#include "transport/net/lane/fake_routing.h"
#include "transport/net/lane/flag_lines.h"
#include "transport/net/lane/path.h"
#include "transport/net/recv/flagged.h"
#include "transport/net/recv/receiver.h"
#include "transport/net/send/flagged.h"
#include "transport/net/send/sender.h"

namespace tutti::test {

using device::kSteps;
using device::Protocol;

inline constexpr device::Protocol kAllProtocols[] = {device::Protocol::LL, device::Protocol::LL128,
                                                     device::Protocol::Simple};
inline std::string nameOf(device::Protocol protocol) {
  return protocol == device::Protocol::LL ? "LL" : protocol == device::Protocol::LL128 ? "LL128" : "Simple";
}
/// LL and Simple have room for 2048 bytes, LL128 for 1920.
inline constexpr device::SlotBytes kSlots{4096, 2048, 2048};
inline std::uint32_t roomOf(device::Protocol protocol) {
  return protocol == device::Protocol::Simple ? kSlots[2]
                                              : net::contentRoom(protocol, kSlots[static_cast<int>(protocol)]);
}

/// The byte at `i` of the content of a step.
inline std::byte contentAt(device::Protocol protocol, std::uint64_t step, std::size_t i) {
  return static_cast<std::byte>((step * 31 + static_cast<std::uint64_t>(protocol) * 7 + i * 13) % 251);
}

/// Slots, counters and words of one end, as they are before step `firstStep`. `Conn`: SendConn or RecvConn.
template <class Conn>
class EndMemoryForTests {
 public:
  explicit EndMemoryForTests(std::uint64_t firstStep = 0) {
    for (auto& counters : counters_) counters.fill({firstStep, {}});
    // Of an earlier step, for zero is the word of step 2^32 - 1.
    const auto begin = [&](auto& sizes) { std::ranges::fill(sizes.word, device::sizeWord(firstStep - 1, 0)); };
    if constexpr (kSends) std::ranges::for_each(words_.size, begin);
    if constexpr (!kSends) begin(words_.expected);
    for (int p = 0; p < device::kProtocols; ++p) {
      slots_[p].resize(std::size_t{kSlots[p]} * device::kSteps / sizeof(Line));
      // Zero is what comes before step 0; later it would be a flag of its own.
      std::memset(slots_[p].data(), p == 2 || firstStep != 0 ? 0xaa : 0, slots_[p].size() * sizeof(Line));
      view.slots[p] = reinterpret_cast<std::byte*>(slots_[p].data());
      view.slotBytes[p] = kSlots[p];
    }
    view.tail = counters_[0].data();
    view.head = counters_[1].data();
    view.step = counters_[2].data();
    view.words = &words_;
    messages.resize(kSends ? net::senderMessageBytes(kSlots) : net::receiverMessageBytes(kSlots));
  }
  Conn view{};
  std::vector<std::byte> messages;

 private:
  static constexpr bool kSends = std::is_same_v<Conn, device::SendConn>;
  struct alignas(128) Line {
    std::byte bytes[128];
  };
  std::vector<Line> slots_[device::kProtocols];
  alignas(128) std::array<device::Counter, device::kProtocols> counters_[3];
  alignas(128) std::conditional_t<kSends, device::SendWords, device::RecvWords> words_{};
};
using SenderMemory = EndMemoryForTests<device::SendConn>;
using ReceiverMemory = EndMemoryForTests<device::RecvConn>;

/// What device code wants to know of its surroundings: one thread, whose communicator is aborted, so that no wait goes
/// on for long.
struct LoneThread {
  simt::HostOps ops{.barrier = nullptr,
                    .warpSync = nullptr,
                    .shuffle = nullptr,
                    .ballot = nullptr,
                    .pause = [](simt::HostThread*, bool) {},
                    .trap = nullptr};
  simt::HostThread self{&ops, nullptr, 0, 1, 0, 1, nullptr, nullptr};
  std::uint32_t abortWord = 1;
  simt::Thread thread() { return simt::Thread(&self); }
};

/// A kernel that sends, step by step.
class SendingKernel {
 public:
  SendingKernel(const device::SendConn& view, std::uint64_t firstStep = 0)
      : view_(view), steps_{firstStep, firstStep, firstStep} {}

  std::uint64_t step(device::Protocol protocol) const { return steps_[static_cast<int>(protocol)]; }
  bool hasCredit(device::Protocol protocol) {
    return step(protocol) - lone_.thread().loadAcquireSys(view_.headOf(protocol)) < device::kSteps;
  }
  /// One step with `bytes` of content; false: no slot is free.
  bool send(device::Protocol protocol, std::uint32_t bytes) {
    if (!hasCredit(protocol)) return false;
    std::vector<std::byte> content(bytes);
    for (std::uint32_t i = 0; i < bytes; ++i) content[i] = contentAt(protocol, step(protocol), i);
    if (protocol != device::Protocol::Simple) {
      writeLines(protocol, content.data(), bytes);
    } else if (bytes > 0) {
      std::memcpy(slotOf(protocol), content.data(), bytes);
    }
    finish(protocol, bytes, nullptr);
    return true;
  }
  /// Simple: `content` stays where it is until the step has been acknowledged.
  void offer(const std::byte* content, std::uint32_t bytes) { finish(device::Protocol::Simple, bytes, content); }
  /// Says nothing of the size, and does not go on: a step that is not complete.
  void writeLines(device::Protocol protocol, const std::byte* content, std::uint32_t bytes) {
    const std::uint32_t slotBytes = view_.slotBytes[static_cast<int>(protocol)];
    const device::Spot spot{lone_.thread(), {0, 1}, slotOf(protocol), slotBytes, step(protocol)};
    if (protocol == device::Protocol::LL) device::WireLL::pack(spot, 0, bytes, content);
    if (protocol == device::Protocol::LL128) device::WireLL128::pack(spot, 0, bytes, content);
  }
  void tell(device::Protocol protocol, std::uint32_t bytes) {
    device::tellSize(lone_.thread(), view_, protocol, step(protocol), bytes);
  }

 private:
  std::byte* slotOf(device::Protocol protocol) const {
    const int p = static_cast<int>(protocol);
    return view_.slots[p] + steps_[p] % device::kSteps * view_.slotBytes[p];
  }
  void finish(device::Protocol protocol, std::uint32_t bytes, const void* offered) {
    tell(protocol, bytes);
    std::uint64_t& step = steps_[static_cast<int>(protocol)];
    if (protocol == device::Protocol::Simple) {
      device::offer(lone_.thread(), view_, step, offered);
      lone_.thread().storeReleaseSys(view_.tailOf(protocol), step + 1);
    }
    ++step;
  }

  device::SendConn view_;
  LoneThread lone_;
  std::uint64_t steps_[device::kProtocols];
};

/// A kernel that receives, step by step, and compares.
class ReceivingKernel {
 public:
  ReceivingKernel(const device::RecvConn& view, std::uint64_t firstStep = 0)
      : view_(view), steps_{firstStep, firstStep, firstStep} {}

  std::uint64_t step(device::Protocol protocol) const { return steps_[static_cast<int>(protocol)]; }
  /// Simple: says what it is going to read of its next step.
  void expect(std::uint32_t bytes) { device::expectSize(lone_.thread(), view_, steps_[2], bytes); }
  /// Takes a step of `bytes`; false: it is not there.
  bool recv(device::Protocol protocol, std::uint32_t bytes) {
    std::vector<std::byte> found(roomOf(protocol) + 512);
    std::uint64_t& step = steps_[static_cast<int>(protocol)];
    if (!take(protocol, bytes, found.data())) return false;
    for (std::uint32_t i = 0; i < bytes; ++i) {
      EXPECT_EQ(found[i], contentAt(protocol, step, i)) << "byte " << i << " of " << bytes << " of step " << step;
      if (found[i] != contentAt(protocol, step, i)) break;
    }
    lone_.thread().storeReleaseSys(view_.headOf(protocol), ++step);
    return true;
  }

 private:
  bool take(device::Protocol protocol, std::uint32_t bytes, std::byte* into) {
    const int p = static_cast<int>(protocol);
    std::byte* const slot = view_.slots[p] + steps_[p] % device::kSteps * view_.slotBytes[p];
    const device::Spot spot{lone_.thread(), {0, 1}, slot, view_.slotBytes[p], steps_[p]};
    if (protocol == device::Protocol::LL) return device::WireLL::unpack(spot, &lone_.abortWord, 0, bytes, into);
    if (protocol == device::Protocol::LL128) return device::WireLL128::unpack(spot, &lone_.abortWord, 0, bytes, into);
    expect(bytes);
    if (lone_.thread().loadAcquireSys(view_.tailOf(protocol)) == steps_[p]) return false;
    std::memcpy(into, slot, bytes);
    return true;
  }

  device::RecvConn view_;
  LoneThread lone_;
  std::uint64_t steps_[device::kProtocols];
};

inline net::NetPath pathFor(device::Direction direction, int self = 0, int peer = 3) {
  net::NetPath path{{}, direction, "NET/Fake/0"};
  path.link.self.rank = self;
  path.link.peer.rank = peer;
  path.link.self.cudaDevice = path.link.peer.cudaDevice = 0;
  path.link.channel = 1;
  std::snprintf(path.link.self.hostName.data(), path.link.self.hostName.size(), "hosta");
  std::snprintf(path.link.peer.hostName.data(), path.link.peer.hostName.size(), "hostb");
  return path;
}

/// The connection of one protocol family between two ends, and its memory, registered.
struct LanePair {
  net::NetLane sender;
  net::NetLane receiver;
};

/// Opens one network connection and registers the memory of both ends with it.
inline LanePair connectLanes(FakeNet& net, std::vector<std::pair<void*, std::size_t>> sends,
                             std::vector<std::pair<void*, std::size_t>> receives) {
  LanePair lanes;
  lanes.sender.net = lanes.receiver.net = &net;
  plugin::NetHandle handle{};
  auto listener = net.listen(0, handle);
  for (int i = 0; i < 100 && lanes.sender.connection == nullptr; ++i) {
    lanes.sender.connection = net.connect(0, handle).value();
  }
  for (int i = 0; i < 100 && lanes.receiver.connection == nullptr; ++i) {
    lanes.receiver.connection = net.accept(listener.value()).value();
  }
  EXPECT_TRUE(net.closeListen(listener.value()).ok());
  const auto reg = [&](net::NetLane& lane, const auto& spots) {
    for (const auto& [data, bytes] : spots) {
      lane.registration = net.registerMemory(lane.connection, data, bytes, plugin::PtrKind::Host).value();
    }
    lane.slotRegistration = lane.registration;
  };
  reg(lanes.sender, sends);
  reg(lanes.receiver, receives);
  return lanes;
}

/// Both ends of a connection over a network of the process, with tasks and kernels.
struct NetPair {
  /// `hasLeft`: what each end is told of its peer.
  explicit NetPair(FakeKnobs knobs = {}, std::uint64_t firstStep = 0, bool offers = false,
                   std::function<bool(int)> hasLeft = {}, milliseconds grace = milliseconds(60'000))
      : net(std::move(knobs)),
        out(firstStep),
        in(firstStep),
        kernelOut(viewThatOffers(offers), firstStep),
        kernelIn(in.view, firstStep) {
    simple = connectLanes(net, {{out.view.slots[2], kSlots[2] * device::kSteps}},
                          {{in.view.slots[2], kSlots[2] * device::kSteps}});
    flagged =
        connectLanes(net, {{out.messages.data(), out.messages.size()}}, {{in.messages.data(), in.messages.size()}});
    net::NetPath sending = pathFor(device::Direction::Send);
    sending.farewells = farewells(hasLeft);
    sender = std::make_unique<net::NetSender>(
        net::SendSetup{{sending, &simple.sender, &flagged.sender, out.messages.data(), firstStep, grace}, out.view});
    net::NetPath receiving = pathFor(device::Direction::Recv, 3, 0);
    receiving.farewells = farewells(std::move(hasLeft));
    receiver = std::make_unique<net::NetReceiver>(net::RecvSetup{
        {receiving, &simple.receiver, &flagged.receiver, in.messages.data(), firstStep, grace}, in.view});
  }
  const device::SendConn& viewThatOffers(bool offers) {
    if (offers) out.view.pull.addresses = &addresses;
    return out.view;
  }
  /// One round of both tasks.
  void advance() {
    EXPECT_TRUE(sender->advance().ok());
    EXPECT_TRUE(receiver->advance().ok());
  }

  FakeNet net;
  device::SlotWords addresses{};
  SenderMemory out;
  ReceiverMemory in;
  SendingKernel kernelOut;
  ReceivingKernel kernelIn;
  LanePair simple, flagged;
  std::unique_ptr<net::NetSender> sender;
  std::unique_ptr<net::NetReceiver> receiver;
};

}  // namespace tutti::test
