#include "comm/state/red_ops.h"

#include <gtest/gtest.h>

#include <bit>

#include "support/log_capture.h"

namespace tutti::comm {
namespace {

TEST(RedOps, AverageScalesFloatsBeforeAndIntegersAfter) {
  const RedOpTable table(1);
  const auto floats = table.resolve(ncclAvg, ncclFloat32, 4);
  ASSERT_TRUE(floats.ok());
  EXPECT_EQ(floats.value().op, device::DevOp::PreMulSum);
  EXPECT_EQ(floats.value().scalar, std::bit_cast<std::uint32_t>(0.25F));
  const auto integers = table.resolve(ncclAvg, ncclInt64, 4);
  ASSERT_TRUE(integers.ok());
  EXPECT_EQ(integers.value().op, device::DevOp::SumPostDiv);
  EXPECT_EQ(integers.value().scalar, 4U);
}

TEST(RedOps, ReciprocalsAreRoundedToTheType) {
  EXPECT_EQ(reciprocalBits(1, ncclFloat16), 0x3c00U);
  EXPECT_EQ(reciprocalBits(3, ncclFloat16), 0x3555U);
  EXPECT_EQ(reciprocalBits(3, ncclBfloat16), 0x3eabU);
  EXPECT_EQ(reciprocalBits(8, ncclBfloat16), 0x3e00U);
  EXPECT_EQ(reciprocalBits(2, ncclFloat8e4m3), 0x30U);
  EXPECT_EQ(reciprocalBits(2, ncclFloat8e5m2), 0x38U);
  EXPECT_EQ(reciprocalBits(3, ncclFloat64), std::bit_cast<std::uint64_t>(1.0 / 3));
  EXPECT_EQ(reciprocalBits(1 << 16, ncclFloat16), 0x0100U) << "subnormal";
}

TEST(RedOps, UserOperatorLivesFromCreateToDestroy) {
  test::expectLog("unknown to this communicator");
  test::expectLog("unknown to this communicator");
  RedOpTable table(0x1234567);
  const float factor = 2.5F;
  const auto op = table.create(&factor, ncclFloat32, ncclScalarHostImmediate);
  ASSERT_TRUE(op.ok());
  EXPECT_GE(static_cast<int>(op.value()), static_cast<int>(ncclNumOps));
  EXPECT_TRUE(table.exists(op.value()));
  const auto reduction = table.resolve(op.value(), ncclFloat32, 8);
  ASSERT_TRUE(reduction.ok());
  EXPECT_EQ(reduction.value().scalar, std::bit_cast<std::uint32_t>(2.5F));
  EXPECT_TRUE(table.destroy(op.value()).ok());
  EXPECT_FALSE(table.exists(op.value()));
  EXPECT_EQ(table.resolve(op.value(), ncclFloat32, 8).status().code(), ncclInvalidArgument);
  EXPECT_EQ(table.destroy(op.value()).code(), ncclInvalidArgument);
}

TEST(RedOps, OperatorOfAnotherTypeIsRefused) {
  test::expectLog("operator was made for f32");
  RedOpTable table(3);
  const float factor = 1;
  const auto op = table.create(&factor, ncclFloat32, ncclScalarHostImmediate);
  ASSERT_TRUE(op.ok());
  EXPECT_EQ(table.resolve(op.value(), ncclFloat64, 2).status().code(), ncclInvalidArgument);
}

TEST(RedOps, OperatorOfAnotherCommunicatorIsUnknown) {
  RedOpTable mine(0x7f0000001000);
  const RedOpTable other(0x7f0000002000);
  const float factor = 1;
  const auto op = mine.create(&factor, ncclFloat32, ncclScalarHostImmediate);
  ASSERT_TRUE(op.ok());
  EXPECT_FALSE(other.exists(op.value()));
}

TEST(RedOps, DeviceScalarStaysAnAddress) {
  RedOpTable table(3);
  auto* const address = reinterpret_cast<const void*>(0xdead0000);
  const auto op = table.create(address, ncclFloat16, ncclScalarDevice);
  ASSERT_TRUE(op.ok());
  const auto reduction = table.resolve(op.value(), ncclFloat16, 2);
  ASSERT_TRUE(reduction.ok());
  EXPECT_TRUE(reduction.value().scalarIsPointer);
  EXPECT_EQ(reduction.value().scalar, 0xdead0000U);
}

}  // namespace
}  // namespace tutti::comm
