// Data-parallel training with kernels of one's own. Each device computes the gradient over its share of the batch; the
// gradient of the second layer is added up over all devices while the kernels still work on that of the first. At the
// end the host trains alone and compares the weights.
//
//   05_own_kernels [devices] [steps]
//
// Without a GPU: softgpu-run -n 4 05_own_kernels 4
#include <cmath>
#include <cstdlib>
#include <vector>

#include "../common.h"

namespace {

constexpr int kInputs = 24;
constexpr int kHidden = 32;
constexpr int kOutputs = 4;
constexpr int kSamples = 256;  // of the batch, over all devices
constexpr float kRate = 0.05F;

// --- The model: y = W2 tanh(W1 x), and half the squared error against a target. One thread per result.

__global__ void forwardHidden(int samples, const float* w1, const float* x, float* hidden) {
  const int sample = blockIdx.y;
  const int unit = blockIdx.x * blockDim.x + threadIdx.x;
  if (sample >= samples || unit >= kHidden) return;
  float sum = 0;
  for (int i = 0; i < kInputs; ++i) sum += w1[unit * kInputs + i] * x[sample * kInputs + i];
  hidden[sample * kHidden + unit] = tanhf(sum);
}

/// The error y - target of each output, and the sum of squares over the block's samples, through shared memory.
__global__ void outputError(int samples, const float* w2, const float* hidden, const float* target, float* error,
                            float* loss) {
  __shared__ float squares[64];
  const int sample = blockIdx.x * blockDim.x + threadIdx.x;
  float square = 0;
  for (int output = 0; sample < samples && output < kOutputs; ++output) {
    float sum = 0;
    for (int h = 0; h < kHidden; ++h) sum += w2[output * kHidden + h] * hidden[sample * kHidden + h];
    const float difference = sum - target[sample * kOutputs + output];
    error[sample * kOutputs + output] = difference;
    square += difference * difference;
  }
  squares[threadIdx.x] = square;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) squares[threadIdx.x] += squares[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(loss, squares[0] / 2);
}

__global__ void gradientOfW2(int samples, const float* error, const float* hidden, float* gradient) {
  const int weight = blockIdx.x * blockDim.x + threadIdx.x;
  if (weight >= kOutputs * kHidden) return;
  float sum = 0;
  for (int s = 0; s < samples; ++s) {
    sum += error[s * kOutputs + weight / kHidden] * hidden[s * kHidden + weight % kHidden];
  }
  gradient[weight] = sum;
}

__global__ void gradientOfW1(int samples, const float* w2, const float* error, const float* hidden, const float* x,
                             float* gradient) {
  const int weight = blockIdx.x * blockDim.x + threadIdx.x;
  if (weight >= kHidden * kInputs) return;
  const int unit = weight / kInputs;
  float sum = 0;
  for (int s = 0; s < samples; ++s) {
    float back = 0;
    for (int o = 0; o < kOutputs; ++o) back += error[s * kOutputs + o] * w2[o * kHidden + unit];
    const float active = hidden[s * kHidden + unit];
    sum += back * (1 - active * active) * x[s * kInputs + weight % kInputs];
  }
  gradient[weight] = sum;
}

__global__ void descend(int weights, float rate, const float* gradient, float* weight) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < weights) weight[i] -= rate * gradient[i];
}

int blocksFor(int threads) {
  return (threads + 63) / 64;
}

// --- One device and its share.

float* deviceCopy(const std::vector<float>& host) {
  float* device = nullptr;
  CHECK_CUDA(cudaMalloc(reinterpret_cast<void**>(&device), host.size() * sizeof(float)));
  CHECK_CUDA(cudaMemcpy(device, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice));
  return device;
}

float* deviceRoom(std::size_t count) {
  return deviceCopy(std::vector<float>(count, 0.0F));
}

struct Replica {
  ncclComm_t comm = nullptr;
  cudaStream_t compute = nullptr;
  cudaStream_t exchange = nullptr;
  cudaEvent_t gradientReady = nullptr;
  cudaEvent_t gradientSummed = nullptr;
  int samples = 0;
  float *x = nullptr, *target = nullptr, *hidden = nullptr, *error = nullptr, *loss = nullptr;
  float *w1 = nullptr, *w2 = nullptr, *g1 = nullptr, *g2 = nullptr;
};

struct Problem {
  std::vector<float> x, target, w1, w2;
};

/// Numbers that look like chance and are the same everywhere.
std::vector<float> numbers(std::size_t count, unsigned seed, float scale) {
  std::vector<float> all(count);
  for (float& number : all) {
    seed = seed * 1664525U + 1013904223U;
    number = scale * (static_cast<float>(seed >> 8) / 8388608.0F - 1.0F);
  }
  return all;
}

void prepare(Replica& replica, const Problem& problem, int device, int devices) {
  CHECK_CUDA(cudaSetDevice(device));
  replica.samples = kSamples / devices;
  const auto share = [&](const std::vector<float>& all, int each) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(device) * replica.samples * each;
    return std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(replica.samples) * each);
  };
  replica.x = deviceCopy(share(problem.x, kInputs));
  replica.target = deviceCopy(share(problem.target, kOutputs));
  replica.w1 = deviceCopy(problem.w1);
  replica.w2 = deviceCopy(problem.w2);
  replica.hidden = deviceRoom(static_cast<std::size_t>(replica.samples) * kHidden);
  replica.error = deviceRoom(static_cast<std::size_t>(replica.samples) * kOutputs);
  replica.loss = deviceRoom(1);
  replica.g1 = deviceRoom(problem.w1.size());
  replica.g2 = deviceRoom(problem.w2.size());
  CHECK_CUDA(cudaStreamCreate(&replica.compute));
  CHECK_CUDA(cudaStreamCreate(&replica.exchange));
  CHECK_CUDA(cudaEventCreateWithFlags(&replica.gradientReady, cudaEventDisableTiming));
  CHECK_CUDA(cudaEventCreateWithFlags(&replica.gradientSummed, cudaEventDisableTiming));
}

void sumGradient(std::vector<Replica>& replicas, float* Replica::*gradient, int count) {
  CHECK_NCCL(ncclGroupStart());
  for (Replica& r : replicas) {
    CHECK_NCCL(ncclAllReduce(r.*gradient, r.*gradient, static_cast<std::size_t>(count), ncclFloat, ncclSum, r.comm,
                             r.exchange));
  }
  CHECK_NCCL(ncclGroupEnd());
}

void step(std::vector<Replica>& replicas) {
  constexpr int kW1 = kHidden * kInputs;
  constexpr int kW2 = kOutputs * kHidden;
  for (std::size_t device = 0; device < replicas.size(); ++device) {
    Replica& r = replicas[device];
    CHECK_CUDA(cudaSetDevice(static_cast<int>(device)));
    CHECK_CUDA(cudaMemsetAsync(r.loss, 0, sizeof(float), r.compute));
    forwardHidden<<<dim3(blocksFor(kHidden), static_cast<unsigned>(r.samples)), 64, 0, r.compute>>>(r.samples, r.w1,
                                                                                                    r.x, r.hidden);
    outputError<<<blocksFor(r.samples), 64, 0, r.compute>>>(r.samples, r.w2, r.hidden, r.target, r.error, r.loss);
    gradientOfW2<<<blocksFor(kW2), 64, 0, r.compute>>>(r.samples, r.error, r.hidden, r.g2);
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaEventRecord(r.gradientReady, r.compute));
    CHECK_CUDA(cudaStreamWaitEvent(r.exchange, r.gradientReady, 0));
    gradientOfW1<<<blocksFor(kW1), 64, 0, r.compute>>>(r.samples, r.w2, r.error, r.hidden, r.x, r.g1);
    CHECK_CUDA(cudaGetLastError());
  }
  sumGradient(replicas, &Replica::g2, kW2);  // while the kernels work on the other gradient
  for (std::size_t device = 0; device < replicas.size(); ++device) {
    Replica& r = replicas[device];
    CHECK_CUDA(cudaSetDevice(static_cast<int>(device)));
    CHECK_CUDA(cudaEventRecord(r.gradientReady, r.compute));
    CHECK_CUDA(cudaStreamWaitEvent(r.exchange, r.gradientReady, 0));
  }
  sumGradient(replicas, &Replica::g1, kW1);
  for (std::size_t device = 0; device < replicas.size(); ++device) {
    Replica& r = replicas[device];
    CHECK_CUDA(cudaSetDevice(static_cast<int>(device)));
    CHECK_CUDA(cudaEventRecord(r.gradientSummed, r.exchange));
    CHECK_CUDA(cudaStreamWaitEvent(r.compute, r.gradientSummed, 0));
    descend<<<blocksFor(kW2), 64, 0, r.compute>>>(kW2, kRate / kSamples, r.g2, r.w2);
    descend<<<blocksFor(kW1), 64, 0, r.compute>>>(kW1, kRate / kSamples, r.g1, r.w1);
    CHECK_CUDA(cudaGetLastError());
  }
}

float lossOf(std::vector<Replica>& replicas) {
  float sum = 0;
  for (std::size_t device = 0; device < replicas.size(); ++device) {
    CHECK_CUDA(cudaSetDevice(static_cast<int>(device)));
    CHECK_CUDA(cudaStreamSynchronize(replicas[device].compute));
    float share = 0;
    CHECK_CUDA(cudaMemcpy(&share, replicas[device].loss, sizeof share, cudaMemcpyDeviceToHost));
    sum += share;
  }
  return sum / kSamples;
}

// --- The same on the host alone.

void stepOnHost(Problem& p) {
  std::vector<double> g1(p.w1.size()), g2(p.w2.size());
  for (int s = 0; s < kSamples; ++s) {
    double hidden[kHidden], error[kOutputs];
    for (int h = 0; h < kHidden; ++h) {
      double sum = 0;
      for (int i = 0; i < kInputs; ++i) sum += double{p.w1[h * kInputs + i]} * p.x[s * kInputs + i];
      hidden[h] = std::tanh(sum);
    }
    for (int o = 0; o < kOutputs; ++o) {
      error[o] = -p.target[s * kOutputs + o];
      for (int h = 0; h < kHidden; ++h) error[o] += p.w2[o * kHidden + h] * hidden[h];
      for (int h = 0; h < kHidden; ++h) g2[o * kHidden + h] += error[o] * hidden[h];
    }
    for (int h = 0; h < kHidden; ++h) {
      double back = 0;
      for (int o = 0; o < kOutputs; ++o) back += error[o] * p.w2[o * kHidden + h];
      back *= 1 - hidden[h] * hidden[h];
      for (int i = 0; i < kInputs; ++i) g1[h * kInputs + i] += back * p.x[s * kInputs + i];
    }
  }
  for (std::size_t i = 0; i < g1.size(); ++i) p.w1[i] -= static_cast<float>(kRate / kSamples * g1[i]);
  for (std::size_t i = 0; i < g2.size(); ++i) p.w2[i] -= static_cast<float>(kRate / kSamples * g2[i]);
}

double furthest(const std::vector<float>& expected, const float* device) {
  std::vector<float> found(expected.size());
  CHECK_CUDA(cudaMemcpy(found.data(), device, found.size() * sizeof(float), cudaMemcpyDeviceToHost));
  double most = 0;
  for (std::size_t i = 0; i < found.size(); ++i) most = std::fmax(most, std::fabs(double{found[i]} - expected[i]));
  return most;
}

}  // namespace

int main(int argc, char** argv) {
  const int devices = argc > 1 ? std::atoi(argv[1]) : 2;
  const int steps = argc > 2 ? std::atoi(argv[2]) : 100;
  if (devices < 1 || kSamples % devices != 0) {
    std::fprintf(stderr, "05_own_kernels: %d devices cannot share %d samples evenly\n", devices, kSamples);
    return 2;
  }
  Problem problem{numbers(kSamples * kInputs, 1, 1), numbers(kSamples * kOutputs, 2, 1),
                  numbers(kHidden * kInputs, 3, 0.3F), numbers(kOutputs * kHidden, 4, 0.3F)};
  std::vector<Replica> replicas(static_cast<std::size_t>(devices));
  std::vector<ncclComm_t> comms(replicas.size());
  CHECK_NCCL(ncclCommInitAll(comms.data(), devices, nullptr));
  for (int device = 0; device < devices; ++device) {
    replicas[static_cast<std::size_t>(device)].comm = comms[static_cast<std::size_t>(device)];
    prepare(replicas[static_cast<std::size_t>(device)], problem, device, devices);
  }
  step(replicas);
  std::printf("loss at first  %.5f\n", lossOf(replicas));
  for (int i = 1; i < steps; ++i) step(replicas);
  std::printf("loss after %3d %.5f\n", steps, lossOf(replicas));

  for (int i = 0; i < steps; ++i) stepOnHost(problem);
  double most = 0;
  for (int device = 0; device < devices; ++device) {
    CHECK_CUDA(cudaSetDevice(device));
    CHECK_CUDA(cudaDeviceSynchronize());
    const Replica& replica = replicas[static_cast<std::size_t>(device)];
    most = std::fmax(most, std::fmax(furthest(problem.w1, replica.w1), furthest(problem.w2, replica.w2)));
    CHECK_NCCL(ncclCommDestroy(replica.comm));
  }
  std::printf("%d devices: weights differ by at most %.1e from those of the host alone\n", devices, most);
  return most < 1e-4 ? 0 : 1;
}
