#include "device/partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "device/built_kernels.h"
#include "device/kernels/kernel_name.h"
#include "device/simt/simt_host_abi.h"

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

/// The largest size that the API lets through (api/size_checks.h), and what is next to it.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 60;

TEST(Partition, OfTheLargestSizesCoversEveryElementOnce) {
  for (const std::size_t elementBytes : {1u, 2u, 4u, 8u}) {
    const std::uint64_t most = kMostBytes / elementBytes;
    for (const std::uint64_t count : {most, most - 1, most / 3}) {
      for (const unsigned channels : {1u, 3u, 64u}) {
        std::uint64_t next = 0;
        for (unsigned c = 0; c < channels; ++c) {
          const Part part = channelPart(count, elementBytes, channels, c);
          ASSERT_EQ(part.begin, next);
          ASSERT_LE(part.count, count / channels + kGrainBytes);
          next = part.end();
        }
        ASSERT_EQ(next, count);
      }
    }
  }
}

TEST(Partition, LastPiecesOfTheLargestSizesEndWithThem) {
  constexpr std::uint64_t kPiece = 4096;
  const Part whole{kMostBytes / 2, kMostBytes / 2 - 1};
  const std::uint64_t pieces = divideUp(whole.count, kPiece);
  EXPECT_EQ(pieceOf(whole, kPiece, pieces - 1).end(), kMostBytes - 1);
  for (std::uint64_t beyond = 0; beyond < 256; ++beyond) {
    EXPECT_EQ(pieceOf(whole, kPiece, pieces + beyond).count, 0U) << "chunks of ranks that get nothing";
  }
  for (const unsigned ranks : {2u, 3u, 1024u}) {
    EXPECT_EQ(ringChunk(kMostBytes, kPiece, ranks, 4), kPiece);
    EXPECT_EQ(ringChunk(kMostBytes, kMostBytes, ranks, 4) % grainOf(4), 0U);
    EXPECT_GE(ringChunk(kMostBytes, kMostBytes, ranks, 4) * ranks, kMostBytes);
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
  EXPECT_FALSE(kernelExists(Func::Broadcast, Algorithm::Tree, Protocol::Simple, DevOp::Sum, ncclFloat32));
  EXPECT_FALSE(kernelExists(Func::AllReduce, Algorithm::Ring, Protocol::Simple, DevOp::SumPostDiv, ncclFloat32));
}

TEST(KernelName, WhatIsSaidToExistIsBuiltAndNothingElse) {
  std::set<std::string> wanted;
  for (int f = 0; f <= static_cast<int>(Func::SendRecv); ++f) {
    for (int a = 0; a < kAlgorithms; ++a) {
      for (int p = 0; p < kProtocols; ++p) {
        for (int op = 0; op <= static_cast<int>(DevOp::SumPostDiv); ++op) {
          for (int type = 0; type < ncclNumTypes; ++type) {
            const auto func = static_cast<Func>(f);
            const auto algorithm = static_cast<Algorithm>(a);
            const auto protocol = static_cast<Protocol>(p);
            const auto devOp = static_cast<DevOp>(op);
            const auto dataType = static_cast<ncclDataType_t>(type);
            if (!kernelExists(func, algorithm, protocol, devOp, dataType)) continue;
            wanted.insert(kernelName(func, algorithm, protocol, devOp, dataType));
          }
        }
      }
    }
  }
  std::set<std::string> built;
  const simt::HostKernelTable* table = tuttiHostKernels();
  for (std::uint32_t i = 0; i < table->count; ++i) built.insert(table->kernels[i].name);
  if (test::kPartialBuild) {
    EXPECT_TRUE(std::includes(wanted.begin(), wanted.end(), built.begin(), built.end()));
    EXPECT_FALSE(built.empty());
  } else {
    EXPECT_EQ(built, wanted);
  }
}

}  // namespace
}  // namespace tutti::device
