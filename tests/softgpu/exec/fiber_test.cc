// What a kernel's thread is given, whichever thread of the process runs it.
#include <gtest/gtest.h>

#include <cfenv>
#include <cstring>

#include "device/simt/simt.h"
#include "softgpu/exec/block.h"

namespace tutti::softgpu::test {
namespace {

struct DivideShared {};
struct DivideParams {
  float* quotient;
};

void divideBody(simt::Thread, DivideShared&, const DivideParams& p) {
  const volatile float one = 1;
  const volatile float three = 3;
  *p.quotient = one / three;
}
TUTTI_KERNEL(Divide, DivideParams, DivideShared, 1, divideBody)

float dividedByABlock() {
  float quotient = 0;
  const DivideParams given{&quotient};
  StackPool stacks;
  Block block({&Divide_hostKernel, copyParams(&given, sizeof(given)), 1, 1, 0}, 0, stacks);
  while (!block.finished()) block.runPass(nullptr);
  return quotient;
}

TEST(Fibers, CalculateAlikeWhateverTheThreadThatRunsThemHasSet) {
  const float usual = dividedByABlock();
  for (const int rounding : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    ASSERT_EQ(std::fesetround(rounding), 0);
    const float quotient = dividedByABlock();
    EXPECT_EQ(std::fegetround(), rounding) << "the thread keeps its own";
    std::fesetround(FE_TONEAREST);
    EXPECT_EQ(quotient, usual) << rounding;
  }
}

}  // namespace
}  // namespace tutti::softgpu::test
