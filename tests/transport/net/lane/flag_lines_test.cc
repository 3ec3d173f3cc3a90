// Lines that kernels have written are taken, and lines that the host has written are read by kernels.
#include "transport/net/lane/flag_lines.h"

#include <gtest/gtest.h>

#include <vector>

#include "device/packet_ll.h"
#include "transport/net/sim_kernels.h"

namespace tutti::test {
namespace {

class Lines : public testing::TestWithParam<device::Protocol> {};
INSTANTIATE_TEST_SUITE_P(Protocols, Lines, testing::Values(device::Protocol::LL, device::Protocol::LL128),
                         [](const auto& p) { return std::string(p.param == device::Protocol::LL ? "LL" : "LL128"); });

std::vector<std::uint32_t> lengthsFor(device::Protocol protocol) {
  return {0, 1, 7, 8, 9, 112, 113, 119, 120, 121, 336, 337, 448, 449, 470, 479, 480, 481, 961, roomOf(protocol)};
}

net::LineSlot slotOf(const device::ConnFifos& end, device::Protocol protocol, std::uint64_t step) {
  const int p = static_cast<int>(protocol);
  return {end.slots[p] + step % device::kSteps * kSlots[p], kSlots[p], step};
}

TEST_P(Lines, OfAKernelAreTakenWhenAllAreThere) {
  for (const std::uint64_t first : {std::uint64_t{0}, (std::uint64_t{1} << 32) - 2, ~std::uint64_t{0} - 1}) {
    SenderMemory end(first);
    SendingKernel kernel(end.view, first);
    std::uint64_t step = first;
    for (const std::uint32_t bytes : lengthsFor(GetParam())) {
      std::vector<std::byte> content(roomOf(GetParam()) + 1, std::byte{0x55});
      ASSERT_TRUE(kernel.send(GetParam(), bytes));
      const std::uint32_t lines = net::linesFor(GetParam(), bytes);
      ASSERT_EQ(net::takeLines(GetParam(), slotOf(end.view, GetParam(), step), bytes, 0, content.data()), lines)
          << bytes;
      for (std::uint32_t i = 0; i < bytes; ++i)
        ASSERT_EQ(content[i], contentAt(GetParam(), step, i)) << i << " of " << bytes;
      EXPECT_EQ(content.back(), std::byte{0x55});
      *end.view.headOf(GetParam()) = ++step;
    }
  }
}

TEST_P(Lines, ThatAreMissingAreWaitedForAndNotTakenTwice) {
  SenderMemory end, written;
  SendingKernel kernel(written.view);
  const std::uint32_t bytes = roomOf(GetParam());
  ASSERT_TRUE(kernel.send(GetParam(), bytes));
  const std::uint32_t lines = net::linesFor(GetParam(), bytes);
  const std::size_t lineBytes = GetParam() == device::Protocol::LL ? 16 : 128;
  std::vector<std::byte> content(bytes);
  const net::LineSlot slot = slotOf(end.view, GetParam(), 0);
  const net::LineSlot source = slotOf(written.view, GetParam(), 0);
  std::uint32_t taken = 0;
  for (std::uint32_t line = 0; line < lines; ++line) {
    ASSERT_EQ(net::takeLines(GetParam(), slot, bytes, taken, content.data()), line);
    taken = line;
    std::memcpy(slot.data + line * lineBytes, source.data + line * lineBytes, lineBytes);
  }
  ASSERT_EQ(net::takeLines(GetParam(), slot, bytes, taken, content.data()), lines);
  for (std::uint32_t i = 0; i < bytes; ++i) ASSERT_EQ(content[i], contentAt(GetParam(), 0, i)) << i;
}

TEST_P(Lines, OfAnEarlierStepAreNotTaken) {
  SenderMemory end;
  SendingKernel kernel(end.view);
  ASSERT_TRUE(kernel.send(GetParam(), 100));
  std::vector<std::byte> content(roomOf(GetParam()));
  net::LineSlot slot = slotOf(end.view, GetParam(), 0);
  slot.step = device::kSteps;
  EXPECT_EQ(net::takeLines(GetParam(), slot, 100, 0, content.data()), 0u);
}

TEST_P(Lines, OfTheHostAreReadByAKernel) {
  for (const std::uint64_t first : {std::uint64_t{0}, (std::uint64_t{1} << 32) - 2, ~std::uint64_t{0} - 1}) {
    ReceiverMemory end(first);
    ReceivingKernel kernel(end.view, first);
    std::uint64_t step = first;
    for (const std::uint32_t bytes : lengthsFor(GetParam())) {
      std::vector<std::byte> content(roomOf(GetParam()), std::byte{0x55});
      for (std::uint32_t i = 0; i < bytes; ++i) content[i] = contentAt(GetParam(), step, i);
      ASSERT_FALSE(kernel.recv(GetParam(), bytes));
      net::putLines(GetParam(), slotOf(end.view, GetParam(), step), bytes, content.data());
      ASSERT_TRUE(kernel.recv(GetParam(), bytes)) << bytes;
      ++step;
    }
  }
}

TEST_P(Lines, TouchNothingBeyondWhatTheStepNeeds) {
  ReceiverMemory end;
  std::vector<std::byte> content(roomOf(GetParam()), std::byte{1});
  const net::LineSlot slot = slotOf(end.view, GetParam(), 0);
  net::putLines(GetParam(), slot, 8, content.data());
  const std::size_t used = GetParam() == device::Protocol::LL ? 16 : 128;
  for (std::size_t i = used; i < slot.bytes * std::size_t{device::kSteps}; ++i)
    ASSERT_EQ(slot.data[i], std::byte{0}) << i;
}

TEST(LinesOfLL, AreAllWrittenAtTheStartOfAnEpoch) {
  ReceiverMemory end;
  std::vector<std::byte> content(roomOf(device::Protocol::LL), std::byte{1});
  const std::uint64_t step = device::ll::kEpochSteps + 3;
  const net::LineSlot slot = slotOf(end.view, device::Protocol::LL, step);
  net::putLines(device::Protocol::LL, slot, 8, content.data());
  EXPECT_EQ(net::takeLines(device::Protocol::LL, slot, roomOf(device::Protocol::LL), 0, content.data()),
            net::linesFor(device::Protocol::LL, roomOf(device::Protocol::LL)));
}

}  // namespace
}  // namespace tutti::test
