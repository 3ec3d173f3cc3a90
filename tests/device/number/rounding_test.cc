// Reductions of arbitrary bits, NaN and infinities among them: every hop of the ring rounds, in the order of the ring,
// every rank's own input is scaled once, and every rank receives the same bits.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "device/built_kernels.h"
#include "device/kernels/kernel_name.h"
#include "device/launch.h"
#include "device/number/number.h"
#include "device/policy.h"
#include "device/world.h"

namespace tutti::device::test {
namespace {

template <class T>
struct TypeOf;
template <>
struct TypeOf<std::int8_t> {
  static constexpr auto kType = ncclInt8;
};
template <>
struct TypeOf<std::uint8_t> {
  static constexpr auto kType = ncclUint8;
};
template <>
struct TypeOf<std::int32_t> {
  static constexpr auto kType = ncclInt32;
};
template <>
struct TypeOf<std::uint32_t> {
  static constexpr auto kType = ncclUint32;
};
template <>
struct TypeOf<std::int64_t> {
  static constexpr auto kType = ncclInt64;
};
template <>
struct TypeOf<std::uint64_t> {
  static constexpr auto kType = ncclUint64;
};
template <>
struct TypeOf<Half> {
  static constexpr auto kType = ncclFloat16;
};
template <>
struct TypeOf<BFloat16> {
  static constexpr auto kType = ncclBfloat16;
};
template <>
struct TypeOf<float> {
  static constexpr auto kType = ncclFloat32;
};
template <>
struct TypeOf<double> {
  static constexpr auto kType = ncclFloat64;
};
template <>
struct TypeOf<Float8E4M3> {
  static constexpr auto kType = ncclFloat8e4m3;
};
template <>
struct TypeOf<Float8E5M2> {
  static constexpr auto kType = ncclFloat8e5m2;
};

template <class T>
bool isNan(T value) {
  if constexpr (std::is_integral_v<T>) {
    return false;
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::isnan(value);
  } else {
    return std::isnan(toFloat(value));
  }
}

/// Equal bits; which NaN a NaN is stays open, and so does the sign of a zero that won.
template <class T>
bool same(T a, T b) {
  if (std::memcmp(&a, &b, sizeof(T)) == 0) return true;
  if (isNan(a) || isNan(b)) return isNan(a) && isNan(b);
  if constexpr (std::is_integral_v<T>) {
    return false;
  } else if constexpr (std::is_floating_point_v<T>) {
    return a == 0 && b == 0;
  } else {
    return toFloat(a) == 0 && toFloat(b) == 0;
  }
}

template <class T>
T apply(DevOp op, T a, T b) {
  if (op == DevOp::Prod) return multiply(a, b);
  if (op == DevOp::Max) return larger(a, b);
  if (op == DevOp::Min) return lesser(a, b);
  return add(a, b);
}

template <class T>
class RoundingTest : public testing::Test {
 protected:
  static constexpr int kRanks = 4;
  static constexpr std::uint64_t kCount = 3001;

  void SetUp() override {
    for (const DevOp op : {DevOp::Sum, DevOp::Max}) {
      const std::string name = kernelName(Func::AllReduce, Algorithm::Ring, Protocol::Simple, op, TypeOf<T>::kType);
      if (isLeftOut(name)) GTEST_SKIP() << "this build leaves out " << name;
    }
    std::mt19937_64 random(17);
    in_.assign(kRanks, std::vector<T>(kCount * kRanks));
    for (auto& vector : in_) {
      for (T& value : vector) {
        const std::uint64_t bits = random();
        std::memcpy(&value, &bits, sizeof(T));
      }
    }
    for (int r = 0; r < kRanks; ++r) factor_.push_back(in_[r][0]);
  }

  void run(Func func, DevOp op, bool deviceScalar = false) {
    World world({.nRanks = kRanks, .slotBytes = 1024});
    const bool scatters = func == Func::ReduceScatter;
    out_.assign(kRanks, std::vector<T>(scatters ? kCount : kCount * kRanks));
    const std::string name = kernelName(func, Algorithm::Ring, Protocol::Simple, op, TypeOf<T>::kType);
    const simt::HostKernel* kernel = findKernel(name);
    ASSERT_NE(kernel, nullptr) << name;
    std::vector<std::unique_ptr<Launch>> launches;
    for (int r = 0; r < kRanks; ++r) {
      const ChunkShape shape = chunkShape(func, world.shape().slotBytes);
      KernelArgs args{};
      args.comm = world.comm(r);
      args.nWorks = 1;
      args.coll[0] = {.send = in_[r].data(),
                      .recv = out_[r].data(),
                      .count = scatters ? kCount : kCount * kRanks,
                      .chunkBytes = shape.chunkBytes,
                      .stepsPerChunk = shape.stepsPerChunk,
                      .op = op};
      CollWork& work = args.coll[0];
      if (op == DevOp::PreMulSum && deviceScalar) {
        work.scalar = reinterpret_cast<std::uintptr_t>(&factor_[r]);
        work.scalarIsPointer = 1;
      } else if (op == DevOp::PreMulSum) {
        std::memcpy(&work.scalar, &factor_[r], sizeof(T));
      } else {
        work.scalar = kRanks;
      }
      launches.push_back(std::make_unique<Launch>(*kernel, 1, 1, args));
    }
  }

  T input(int rank, std::uint64_t i, DevOp op) const {
    const T own = in_[rank][i];
    return op == DevOp::PreMulSum ? multiply(own, factor_[rank]) : own;
  }

  /// The element that `owner` completes: its next rank starts.
  T expected(int owner, std::uint64_t i, DevOp op) const {
    T partial = input((owner + 1) % kRanks, i, op);
    for (int k = 2; k <= kRanks; ++k) partial = apply(op, input((owner + k) % kRanks, i, op), partial);
    if constexpr (std::is_integral_v<T>) {
      if (op == DevOp::SumPostDiv) partial = static_cast<T>(partial / static_cast<T>(kRanks));
    }
    return partial;
  }

  void check(DevOp op, bool deviceScalar = false) {
    SCOPED_TRACE(devOpName(op));
    run(Func::ReduceScatter, op, deviceScalar);
    for (int r = 0; r < kRanks; ++r) {
      for (std::uint64_t i = 0; i < kCount; ++i) {
        ASSERT_TRUE(same(out_[r][i], expected(r, r * kCount + i, op))) << "rank " << r << " element " << i;
      }
    }
    run(Func::AllReduce, op, deviceScalar);
    for (int r = 1; r < kRanks; ++r) {
      ASSERT_EQ(std::memcmp(out_[r].data(), out_[0].data(), out_[0].size() * sizeof(T)), 0) << "rank " << r;
    }
  }

  std::vector<std::vector<T>> in_, out_;
  std::vector<T> factor_;
};

using AllTypes = testing::Types<std::int8_t, std::uint8_t, std::int32_t, std::uint32_t, std::int64_t, std::uint64_t,
                                Half, BFloat16, float, double, Float8E4M3, Float8E5M2>;
TYPED_TEST_SUITE(RoundingTest, AllTypes);

TYPED_TEST(RoundingTest, EveryHopRoundsInTheOrderOfTheRing) {
  for (const DevOp op : {DevOp::Sum, DevOp::Prod, DevOp::Max, DevOp::Min}) this->check(op);
  if (std::is_integral_v<TypeParam>) this->check(DevOp::SumPostDiv);
}

TYPED_TEST(RoundingTest, EveryRanksInputIsScaledOnceByItsOwnFactor) {
  this->check(DevOp::PreMulSum, false);
  this->check(DevOp::PreMulSum, true);
}

}  // namespace
}  // namespace tutti::device::test
