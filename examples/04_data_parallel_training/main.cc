// Data-parallel training: each process computes the gradient over its share of every batch, ncclAllReduce adds the
// shares, and every process takes the same step. At the end rank 0 trains alone and compares the weights.
//
//   04_data_parallel_training DIGITS.CSV [processes] [epochs]
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <new>
#include <semaphore>
#include <vector>

#include "../common.h"
#include "model.h"

namespace {

using training::DataSet;
using training::Model;

constexpr std::size_t kBatch = 120;
constexpr std::size_t kTestSamples = 357;  // the last ones; the first 1,440 train
constexpr float kRate = 0.4f;
constexpr unsigned kSeed = 7;

/// What the processes share before they have a communicator: the id, and that it is there.
struct Rendezvous {
  ncclUniqueId id{};
  std::counting_semaphore<1024> ready{0};
};

/// Adds a gradient over all processes through device memory.
class GradientSum {
 public:
  GradientSum(int rank, int nRanks, const ncclUniqueId& id) {
    int devices = 0;
    CHECK_CUDA(cudaGetDeviceCount(&devices));
    CHECK_CUDA(cudaSetDevice(rank % devices));
    CHECK_NCCL(ncclCommInitRank(&comm_, nRanks, id, rank));
    CHECK_CUDA(cudaStreamCreate(&stream_));
    CHECK_CUDA(cudaMalloc(reinterpret_cast<void**>(&device_), Model::parameterCount() * sizeof(float)));
  }
  ~GradientSum() {
    CHECK_CUDA(cudaFree(device_));
    CHECK_CUDA(cudaStreamDestroy(stream_));
    CHECK_NCCL(ncclCommDestroy(comm_));
  }
  GradientSum(const GradientSum&) = delete;
  GradientSum& operator=(const GradientSum&) = delete;

  void operator()(std::vector<float>& gradient) {
    const std::size_t bytes = gradient.size() * sizeof(float);
    CHECK_CUDA(cudaMemcpyAsync(device_, gradient.data(), bytes, cudaMemcpyHostToDevice, stream_));
    CHECK_NCCL(ncclAllReduce(device_, device_, gradient.size(), ncclFloat, ncclSum, comm_, stream_));
    CHECK_CUDA(cudaMemcpyAsync(gradient.data(), device_, bytes, cudaMemcpyDeviceToHost, stream_));
    CHECK_CUDA(cudaStreamSynchronize(stream_));
  }

 private:
  ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
  float* device_ = nullptr;
};

/// One pass over the training samples. `share` of `shares` of each batch is computed here, `sum` adds the others'.
template <class Sum>
double trainEpoch(Model& model, const DataSet& data, std::size_t share, std::size_t shares, Sum&& sum) {
  double loss = 0;
  const std::size_t samples = data.size() - kTestSamples;
  for (std::size_t begin = 0; begin < samples; begin += kBatch) {
    const std::size_t size = std::min(kBatch, samples - begin);
    std::vector<float> gradient(Model::parameterCount(), 0.0f);
    loss += model.addGradient(data, begin + size * share / shares, begin + size * (share + 1) / shares, gradient);
    sum(gradient);
    model.step(gradient, kRate / static_cast<float>(size));
  }
  return loss;
}

double largestDifference(const Model& a, const Model& b) {
  double largest = 0;
  for (std::size_t i = 0; i < Model::parameterCount(); ++i) {
    largest = std::max(largest, std::fabs(static_cast<double>(a.weights()[i]) - static_cast<double>(b.weights()[i])));
  }
  return largest;
}

bool compareWithOneProcess(const Model& model, const DataSet& data, int epochs, int nRanks) {
  Model alone(kSeed);
  for (int e = 0; e < epochs; ++e) trainEpoch(alone, data, 0, 1, [](std::vector<float>&) {});
  const double difference = largestDifference(model, alone);
  const bool equal = difference <= 1e-5;
  std::printf("%d processes against one: largest difference of a weight %.2g: %s\n", nRanks, difference,
              equal ? "equal within 1e-5" : "NOT EQUAL");
  return equal;
}

int runRank(int rank, int nRanks, const DataSet& data, int epochs, Rendezvous* rendezvous) {
  if (rank == 0) {
    CHECK_NCCL(ncclGetUniqueId(&rendezvous->id));
    rendezvous->ready.release(nRanks);
  }
  rendezvous->ready.acquire();
  GradientSum sum(rank, nRanks, rendezvous->id);
  Model model(kSeed);
  const std::size_t train = data.size() - kTestSamples;
  for (int e = 1; e <= epochs; ++e) {
    const auto start = std::chrono::steady_clock::now();
    const double loss = trainEpoch(model, data, static_cast<std::size_t>(rank), static_cast<std::size_t>(nRanks), sum);
    const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
    if (rank != 0) continue;
    std::printf("epoch %2d  loss of rank 0's share %.4f  accuracy on unseen digits %.1f %%  %.0f ms\n", e,
                loss * nRanks / static_cast<double>(train), 100 * model.accuracy(data, train, data.size()),
                elapsed.count());
    std::fflush(stdout);
  }
  return rank != 0 || compareWithOneProcess(model, data, epochs, nRanks) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s DIGITS.CSV [processes] [epochs]\n", argv[0]);
    return 2;
  }
  const DataSet data = training::loadDigits(argv[1]);
  const int nRanks = argc > 2 ? std::atoi(argv[2]) : 4;
  const int epochs = argc > 3 ? std::atoi(argv[3]) : 12;
  if (nRanks < 1 || nRanks > 64 || epochs < 1 || data.size() <= kTestSamples) {
    std::fprintf(stderr, "1 to 64 processes, at least one epoch, and more than %zu samples\n", kTestSamples);
    return 2;
  }
  void* shared = mmap(nullptr, sizeof(Rendezvous), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) {
    std::perror("mmap");
    return 1;
  }
  auto* rendezvous = new (shared) Rendezvous();

  // Fork before anything touches CUDA: a child of an initialised process cannot use it.
  for (int rank = 1; rank < nRanks; ++rank) {
    const pid_t pid = fork();
    if (pid < 0) {
      std::perror("fork");
      return 1;
    }
    if (pid == 0) return runRank(rank, nRanks, data, epochs, rendezvous);
  }
  int exitCode = runRank(0, nRanks, data, epochs, rendezvous);
  for (int status = 0; wait(&status) > 0;) {
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) exitCode = 1;
  }
  return exitCode;
}
