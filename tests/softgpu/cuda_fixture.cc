#include "softgpu/cuda_fixture.h"

#include "device/simt/simt.h"

namespace tutti::softgpu::test {
namespace {

struct Shared {
  std::uint32_t word[128];
};

void emptyBody(simt::Thread, Shared&, const KernelParams&) {}

/// Every thread adds what all wrote before the barrier; a missing or early release gives a wrong sum.
void barrierBody(simt::Thread t, Shared& shared, const KernelParams& p) {
  std::uint32_t sum = 0;
  for (std::uint32_t round = 0; round < p.count; ++round) {
    shared.word[t.index()] = round;
    t.syncBlock();
    sum += shared.word[(t.index() + 1) % t.threads()];
    t.syncBlock();
  }
  p.out[t.block() * t.threads() + t.index()] = sum;
}

/// Warps 0 and 1 use barrier 1 while warps 2 and 3 use barrier 2 another number of times.
void namedBarrierBody(simt::Thread t, Shared& shared, const KernelParams& p) {
  const unsigned group = t.warp() / 2;
  const unsigned mate = t.index() ^ 32u;
  std::uint32_t sum = 0;
  for (std::uint32_t round = 0; round < p.count * (group + 1); ++round) {
    shared.word[t.index()] = round + 1;
    t.syncGroup(1 + group, 64);
    sum += shared.word[mate] - round;
    t.syncGroup(1 + group, 64);
  }
  p.out[t.index()] = sum;
}

void warpBody(simt::Thread t, Shared&, const KernelParams& p) {
  std::uint32_t sum = t.index();
  for (unsigned offset = 16; offset != 0; offset /= 2) sum += t.shuffle(sum, t.lane() ^ offset);
  if (t.ballot(t.lane() % 2 == 0) != 0x55555555u) sum = 0;
  p.out[t.index()] = sum;
}

/// The first 32 threads leave before the block's barrier, odd lanes of the rest before a warp operation.
void earlyExitBody(simt::Thread t, Shared&, const KernelParams& p) {
  if (t.warp() == 0) return;
  t.syncBlock();
  if (t.lane() % 2 == 1) return;
  p.out[t.index()] = t.ballot(true);
}

void pingBody(simt::Thread t, Shared&, const KernelParams& p) {
  for (std::uint32_t i = 1; i <= p.count; ++i) {
    t.storeReleaseSys(p.flag, i);
    simt::spinUntil(t, p.out, [&] { return t.loadAcquireSys(p.flag + 16) == i; });
  }
}

void pongBody(simt::Thread t, Shared&, const KernelParams& p) {
  for (std::uint32_t i = 1; i <= p.count; ++i) {
    simt::spinUntil(t, p.out, [&] { return t.loadAcquireSys(p.flag) == i; });
    t.storeReleaseSys(p.flag + 16, i);
  }
}

void waitBody(simt::Thread t, Shared&, const KernelParams& p) {
  simt::spinUntil(t, p.flag + 16, [&] { return t.loadAcquireSys(p.flag) == p.value; });
  if (t.index() == 0) p.out[t.block()] = p.value;
}

void writeBody(simt::Thread t, Shared&, const KernelParams& p) {
  if (t.index() == 0) t.storeReleaseSys(p.out, p.value);
}

void addBody(simt::Thread t, Shared&, const KernelParams& p) {
  p.out[t.index()] += p.value;
}

void trapBody(simt::Thread t, Shared&, const KernelParams&) {
  if (t.index() == 5) t.trap("asked for by the test");
  t.syncBlock();
}

TUTTI_KERNEL(Empty, KernelParams, Shared, 1024, emptyBody)
TUTTI_KERNEL(Barrier, KernelParams, Shared, 128, barrierBody)
TUTTI_KERNEL(NamedBarrier, KernelParams, Shared, 128, namedBarrierBody)
TUTTI_KERNEL(Warp, KernelParams, Shared, 1024, warpBody)
TUTTI_KERNEL(EarlyExit, KernelParams, Shared, 1024, earlyExitBody)
TUTTI_KERNEL(Ping, KernelParams, Shared, 32, pingBody)
TUTTI_KERNEL(Pong, KernelParams, Shared, 32, pongBody)
TUTTI_KERNEL(Wait, KernelParams, Shared, 1024, waitBody)
TUTTI_KERNEL(Write, KernelParams, Shared, 1024, writeBody)
TUTTI_KERNEL(Add, KernelParams, Shared, 1024, addBody)
TUTTI_KERNEL(Trap, KernelParams, Shared, 1024, trapBody)

}  // namespace

const simt::HostKernelTable& testKernels() {
  static const simt::HostKernel kernels[] = {Empty_hostKernel, Barrier_hostKernel,   NamedBarrier_hostKernel,
                                             Warp_hostKernel,  EarlyExit_hostKernel, Ping_hostKernel,
                                             Pong_hostKernel,  Wait_hostKernel,      Write_hostKernel,
                                             Add_hostKernel,   Trap_hostKernel};
  static const simt::HostKernelTable table = {simt::kHostAbiVersion, std::size(kernels), kernels};
  return table;
}

void CudaTest::SetUp() {
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  for (int device : {1, 0}) {
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&contexts_[device], device), CUDA_SUCCESS) << "needs SOFTGPU_DEVICES=2";
    ASSERT_EQ(cuCtxSetCurrent(contexts_[device]), CUDA_SUCCESS);
  }
  ASSERT_EQ(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  void* module = nullptr;
  ASSERT_EQ(softgpuRegisterKernels(&testKernels(), &module), 0);
  module_ = static_cast<CUmodule>(module);
}

void CudaTest::TearDown() {
  EXPECT_CU(cuStreamDestroy(stream_));
  for (const CUdeviceptr pointer : memory_) EXPECT_CU(cuMemFree(pointer));
  EXPECT_CU(cuModuleUnload(module_));
  for (int device : {0, 1}) EXPECT_CU(cuDevicePrimaryCtxRelease(device));
}

std::uint32_t* CudaTest::words() {
  constexpr std::size_t kBytes = 64 << 10;
  CUdeviceptr pointer = 0;
  EXPECT_CU(cuMemAlloc(&pointer, kBytes));
  EXPECT_CU(cuMemsetD8(pointer, 0, kBytes));
  memory_.push_back(pointer);
  return reinterpret_cast<std::uint32_t*>(pointer);
}

CUfunction CudaTest::kernel(const char* name) {
  CUfunction function = nullptr;
  EXPECT_CU(cuModuleGetFunction(&function, module_, name));
  return function;
}

CUresult CudaTest::launch(const char* name, unsigned blocks, unsigned threads, CUstream stream, KernelParams params) {
  void* list[] = {&params};
  return cuLaunchKernel(kernel(name), blocks, 1, 1, threads, 1, 1, 0, stream, list, nullptr);
}

}  // namespace tutti::softgpu::test
