// Every primitive where stores become visible late and out of order, and in schedules of the dice.
#include <gtest/gtest.h>

#include "device/built_kernels.h"
#include "device/kernels/kernel_name.h"
#include "device/primitive_runs.h"

namespace tutti::device::test {
namespace {

class WeakMemory : public testing::TestWithParam<Primitive> {};

TEST_P(WeakMemory, ResultsAreRight) {
  for (const RunShape& shape : shapesFor(GetParam())) {
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      ASSERT_EQ(runPrimitive(GetParam(), shape, seedsOf(seed)), "") << shapeName(shape) << ", seed " << seed;
    }
  }
}

TEST_P(WeakMemory, SchedulesDoNotMatterWithoutIt) {
  for (const RunShape& shape : shapesFor(GetParam())) {
    ASSERT_EQ(runPrimitive(GetParam(), shape, {}), "") << shapeName(shape);
    for (std::uint64_t seed = 1; seed < kSeeds; ++seed) {
      ASSERT_EQ(runPrimitive(GetParam(), shape, {seed, std::nullopt}), "") << shapeName(shape) << ", seed " << seed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Primitives, WeakMemory, testing::ValuesIn(primitives()), [](const auto& tested) {
  return primitiveName(tested.param) + "_" + protocolName(tested.param.protocol);
});

}  // namespace
}  // namespace tutti::device::test
