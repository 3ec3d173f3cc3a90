// Kernels as nvcc compiles them. All take (inputs, outputs, count), as tests/softgpu/ptx/run.h has it.
#include <cooperative_groups.h>
#include <cuda_fp16.h>

#include <cassert>
#include <cstdint>
#include <cstdio>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cuda/barrier>
#include <cuda/pipeline>

// Barriers in shared memory are made by init().
#pragma nv_diag_suppress static_var_with_dynamic_init

namespace cg = cooperative_groups;
using Word = unsigned long long;

__device__ unsigned int index() {
  return blockIdx.x * blockDim.x + threadIdx.x;
}

extern "C" __global__ void sumShared(const Word* in, Word* out, unsigned int count) {
  __shared__ Word cells[128];
  Word sum = 0;
  for (unsigned int i = index(); i < count; i += gridDim.x * blockDim.x) sum += in[i];
  cells[threadIdx.x] = sum;
  __syncthreads();
  for (unsigned int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) cells[threadIdx.x] += cells[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = cells[0];
}

extern "C" __global__ void sumShuffle(const Word* in, Word* out, unsigned int count) {
  __shared__ double ofWarps[32];
  double sum = 0;
  for (unsigned int i = index(); i < count; i += gridDim.x * blockDim.x) sum += static_cast<double>(in[i]) * 0.5;
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
  if (threadIdx.x % 32 == 0) ofWarps[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = threadIdx.x < blockDim.x / 32 ? ofWarps[threadIdx.x] : 0;
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (threadIdx.x == 0) out[blockIdx.x] = __double_as_longlong(sum);
  }
}

__device__ __noinline__ Word ackermann(Word m, Word n) {
  if (m == 0) return n + 1;
  return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

extern "C" __global__ void recursion(const Word* in, Word* out, unsigned int) {
  out[threadIdx.x] = ackermann(in[2 * threadIdx.x], in[2 * threadIdx.x + 1]);
}

struct Shape {
  __device__ virtual Word area() const = 0;
  __device__ virtual ~Shape() {}
};
struct Square : Shape {
  Word side;
  __device__ explicit Square(Word s) : side(s) {}
  __device__ Word area() const override { return side * side; }
};
struct Oblong : Shape {
  Word a, b;
  __device__ Oblong(Word x, Word y) : a(x), b(y) {}
  __device__ Word area() const override { return a * b; }
};

extern "C" __global__ void virtualCalls(const Word* in, Word* out, unsigned int) {
  Shape* shape = in[threadIdx.x] % 2 == 0 ? static_cast<Shape*>(new Square(in[threadIdx.x]))
                                          : static_cast<Shape*>(new Oblong(in[threadIdx.x], 10));
  out[threadIdx.x] = shape->area();
  delete shape;
}

extern "C" __global__ void prints(const Word* in, Word*, unsigned int) {
  if (threadIdx.x == 1) printf("thread %d of %s: %llu %5.2f %c%%\n", threadIdx.x, "prints", in[0], 2.5, 'x');
}

extern "C" __global__ void asserts(const Word* in, Word*, unsigned int) {
  assert(in[threadIdx.x] != 3);
}

extern "C" __global__ void traps(const Word* in, Word*, unsigned int) {
  if (in[threadIdx.x] == 3) __trap();
}

extern "C" __global__ void allocates(const Word*, Word* out, unsigned int) {
  Word* const mine = static_cast<Word*>(malloc(64 * sizeof(Word)));
  if (mine == nullptr) return;
  for (int i = 0; i < 64; ++i) mine[i] = threadIdx.x * 100 + i;
  __syncthreads();
  Word sum = 0;
  for (int i = 0; i < 64; ++i) sum += mine[i];
  out[threadIdx.x] = sum;
  free(mine);
}

extern "C" __global__ void tiles(const Word* in, Word* out, unsigned int) {
  const auto block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<8>(block);
  Word value = in[block.thread_rank()];
  for (int step = tile.size() / 2; step > 0; step /= 2) value += tile.shfl_down(value, step);
  value = tile.shfl(value, 0);
  const auto half = cg::tiled_partition<4>(tile);
  value = value * 100 + half.meta_group_rank() * 10 + half.thread_rank();
  if (threadIdx.x % 3 == 0) {
    const auto together = cg::coalesced_threads();
    value += 1000000 * (together.size() > 0 && together.thread_rank() < together.size());
  }
  block.sync();
  out[block.thread_rank()] = value;
}

extern "C" __global__ void cubReduce(const Word* in, Word* out, unsigned int) {
  using Reduce = cub::BlockReduce<Word, 128>;
  __shared__ typename Reduce::TempStorage storage;
  const Word sum = Reduce(storage).Sum(in[index()]);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

extern "C" __global__ void cubScan(const Word* in, Word* out, unsigned int) {
  using Scan = cub::BlockScan<Word, 96>;
  __shared__ typename Scan::TempStorage storage;
  Word before = 0, all = 0;
  Scan(storage).ExclusiveSum(in[threadIdx.x], before, all);
  out[threadIdx.x] = before * 1000000 + all;
}

extern "C" __global__ void mathematics(const Word* in, Word* out, unsigned int) {
  const double x = static_cast<double>(in[threadIdx.x]) / 7 + 0.1;
  const float f = static_cast<float>(x);
  Word* const mine = out + 10 * threadIdx.x;
  mine[0] = __double_as_longlong(sin(x));
  mine[1] = __double_as_longlong(exp(-x));
  mine[2] = __double_as_longlong(pow(x, 1.7));
  mine[3] = __double_as_longlong(log(x));
  mine[4] = __double_as_longlong(sqrt(x));
  mine[5] = __double_as_longlong(static_cast<double>(sinf(f)));
  mine[6] = __double_as_longlong(static_cast<double>(expf(-f)));
  mine[7] = __double_as_longlong(static_cast<double>(tanhf(f)));
  mine[8] = __double_as_longlong(static_cast<double>(f / 3.0f));
  mine[9] = __double_as_longlong(static_cast<double>(__half2float(__hmul(__float2half(f), __float2half(0.5f)))));
}

__constant__ int weights[4] = {1, 10, 100, 1000};
__device__ unsigned int histogram[16];
__device__ unsigned int ticket;

extern "C" __global__ void lastBlockSums(const Word* in, Word* out, unsigned int) {
  __shared__ bool last;
  atomicAdd(&histogram[in[index()] % 16], weights[in[index()] % 4]);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicInc(&ticket, gridDim.x) == gridDim.x - 1;
  __syncthreads();
  if (last && threadIdx.x < 16) out[threadIdx.x] = atomicAdd(&histogram[threadIdx.x], 0u);
}

extern "C" __global__ void switches(const Word* in, Word* out, unsigned int) {
  const Word value = in[threadIdx.x];
  Word result = 0;
  switch (value) {
    case 0:
      result = 5;
      break;
    case 1:
      result = value * 3;
      [[fallthrough]];
    case 2:
      result += 7;
      break;
    case 3:
      result = 9;
      break;
    case 4:
      result = value << 40;
      break;
    case 5:
      result = __popcll(value) + __clz(static_cast<int>(value));
      break;
    case 6:
      result = __brev(static_cast<unsigned int>(value));
      break;
    default:
      result = ~value;
  }
  out[threadIdx.x] = result;
}

/// Halves of the block hand a word back and forth, by two barriers.
extern "C" __global__ void pingPong(const Word* in, Word* out, unsigned int) {
  using Barrier = cuda::barrier<cuda::thread_scope_block>;
  __shared__ Barrier full, empty;
  __shared__ Word cell;
  if (threadIdx.x == 0) {
    init(&full, blockDim.x);
    init(&empty, blockDim.x);
  }
  __syncthreads();
  Word sum = 0;
  for (unsigned int i = 0; i < 10; ++i) {
    if (threadIdx.x == 0) cell = in[i];
    full.arrive_and_wait();
    sum += cell * (threadIdx.x + 1);
    empty.arrive_and_wait();
  }
  out[threadIdx.x] = sum;
}

/// The next part is copied while this one is summed up.
extern "C" __global__ void pipelined(const Word* in, Word* out, unsigned int count) {
  constexpr unsigned int kStages = 2, kThreads = 64;
  __shared__ Word cells[kStages][kThreads];
  auto pipeline = cuda::make_pipeline();
  const unsigned int parts = count / kThreads;
  Word sum = 0;
  for (unsigned int fetched = 0, part = 0; part < parts; ++part) {
    for (; fetched < parts && fetched < part + kStages; ++fetched) {
      pipeline.producer_acquire();
      cuda::memcpy_async(&cells[fetched % kStages][threadIdx.x], &in[fetched * kThreads + threadIdx.x],
                         cuda::aligned_size_t<8>(8), pipeline);
      pipeline.producer_commit();
    }
    pipeline.consumer_wait();
    sum += cells[part % kStages][threadIdx.x] * (part + 1);
    pipeline.consumer_release();
  }
  out[threadIdx.x] = sum;
}

/// One thread has all of it copied at once, which becomes a bulk copy.
extern "C" __global__ void fetchesInBulk(const Word* in, Word* out, unsigned int count) {
  using Barrier = cuda::barrier<cuda::thread_scope_block>;
  __shared__ alignas(16) Word cells[128];
  __shared__ Barrier ready;
  if (threadIdx.x == 0) init(&ready, blockDim.x);
  __syncthreads();
  Barrier::arrival_token token;
  if (threadIdx.x == 0) {
    cuda::device::memcpy_async_tx(cells, in, cuda::aligned_size_t<16>(count * sizeof(Word)), ready);
    token = cuda::device::barrier_arrive_tx(ready, 1, count * sizeof(Word));
  } else {
    token = ready.arrive();
  }
  ready.wait(std::move(token));
  out[threadIdx.x] = cells[(threadIdx.x + 1) % count];
}
