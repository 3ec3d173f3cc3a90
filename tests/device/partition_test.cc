#include "device/partition.h"

#include <gtest/gtest.h>

#include "device/kernel_name.h"

namespace tutti::device {
namespace {

TEST(Partition, ChannelsCoverEveryElementOnceAndInOrder) {
  for (const std::uint64_t count : {0u, 1u, 127u, 128u, 129u, 100000u}) {
    for (unsigned channels = 1; channels <= 9; ++channels) {
      std::uint64_t next = 0;
      for (unsigned c = 0; c < channels; ++c) {
        const Part part = channelPart(count, 4, channels, c);
        ASSERT_EQ(part.begin, next);
        ASSERT_TRUE(part.count == 0 || part.begin % grainOf(4) == 0) << "keeps the buffer's alignment";
        next = part.end();
      }
      ASSERT_EQ(next, count);
    }
  }
}

TEST(Partition, RingChunksCoverTheTurn) {
  for (const unsigned ranks : {2u, 3u, 8u}) {
    for (const std::uint64_t left : {1u, 100u, 4095u, 1u << 20}) {
      const std::uint64_t chunk = ringChunk(left, 4096, ranks, 4);
      EXPECT_LE(chunk, 4096u);
      EXPECT_TRUE(chunk * ranks >= left || chunk == 4096) << left;
    }
  }
}

TEST(KernelName, SharesKernelsWhereBytesAreTheSame) {
  const auto name = [](Func f, DevOp op, ncclDataType_t t) {
    return kernelName(f, Algorithm::Ring, Protocol::Simple, op, t);
  };
  EXPECT_EQ(name(Func::AllReduce, DevOp::Sum, ncclFloat32), "tutti_AllReduce_Ring_Simple_Sum_f32");
  EXPECT_EQ(name(Func::AllReduce, DevOp::Sum, ncclUint32), "tutti_AllReduce_Ring_Simple_Sum_i32");
  EXPECT_EQ(name(Func::AllReduce, DevOp::Max, ncclUint32), "tutti_AllReduce_Ring_Simple_Any_u32");
  EXPECT_EQ(name(Func::AllReduce, DevOp::Prod, ncclUint8), "tutti_AllReduce_Ring_Simple_Any_u8");
  EXPECT_EQ(name(Func::Reduce, DevOp::Sum, ncclFloat8e4m3), "tutti_Reduce_Ring_Simple_Sum_e4m3");
  EXPECT_EQ(name(Func::AllGather, DevOp::Sum, ncclFloat64), "tutti_AllGather_Ring_Simple_Copy_i8");
  EXPECT_EQ(name(Func::SendRecv, DevOp::Sum, ncclFloat16), "tutti_SendRecv_Copy_i8");
  EXPECT_EQ(kernelFamily(Func::Reduce, Algorithm::Ring, Protocol::Simple, DevOp::Min, ncclUint8),
            "Reduce_Ring_Simple_u8");
  EXPECT_FALSE(kernelExists(Func::AllReduce, Algorithm::Tree, Protocol::Simple, DevOp::Sum, ncclFloat32));
  EXPECT_FALSE(kernelExists(Func::AllReduce, Algorithm::Ring, Protocol::Simple, DevOp::SumPostDiv, ncclFloat32));
}

}  // namespace
}  // namespace tutti::device
