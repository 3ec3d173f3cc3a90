#include "operations.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>

namespace tutti::adversary {

namespace {

constexpr std::size_t kMostElements = 1 << 16;
constexpr std::size_t kMostElementBytes = 8;
constexpr unsigned char kPoison = 0xa5;

constexpr std::array kKinds = {OpKind::AllReduce, OpKind::AllReduce, OpKind::AllGather, OpKind::ReduceScatter,
                               OpKind::Broadcast, OpKind::Reduce,    OpKind::SendRing,  OpKind::SendPair};
constexpr std::array kTypes = {ncclInt32, ncclFloat32, ncclInt64, ncclFloat64, ncclUint8};
constexpr std::array kOperators = {ncclSum, ncclMax, ncclMin};

std::size_t bytesOf(ncclDataType_t type) {
  return type == ncclUint8 ? 1 : type == ncclInt32 || type == ncclFloat32 ? 4 : 8;
}

/// What a rank puts at a place: small, so that sums are exact in every type.
long valueOf(int rank, std::size_t at, int number) {
  return static_cast<long>((static_cast<std::size_t>(rank) * 5 + at * 7 + static_cast<std::size_t>(number)) % 13);
}

void store(void* buffer, std::size_t at, ncclDataType_t type, long value) {
  if (type == ncclInt32) static_cast<std::int32_t*>(buffer)[at] = static_cast<std::int32_t>(value);
  if (type == ncclInt64) static_cast<std::int64_t*>(buffer)[at] = value;
  if (type == ncclFloat32) static_cast<float*>(buffer)[at] = static_cast<float>(value);
  if (type == ncclFloat64) static_cast<double*>(buffer)[at] = static_cast<double>(value);
  if (type == ncclUint8) static_cast<std::uint8_t*>(buffer)[at] = static_cast<std::uint8_t>(value);
}

double load(const void* buffer, std::size_t at, ncclDataType_t type) {
  if (type == ncclInt32) return static_cast<const std::int32_t*>(buffer)[at];
  if (type == ncclInt64) return static_cast<double>(static_cast<const std::int64_t*>(buffer)[at]);
  if (type == ncclFloat32) return static_cast<const float*>(buffer)[at];
  if (type == ncclFloat64) return static_cast<const double*>(buffer)[at];
  return static_cast<const std::uint8_t*>(buffer)[at];
}

/// Elements that each rank gives in, for one of `size` ranks.
std::size_t inputs(const Operation& o, int size) {
  return o.kind == OpKind::ReduceScatter ? o.count * static_cast<std::size_t>(size) : o.count;
}

/// Elements that arrive at `rank`.
std::size_t outputs(const Operation& o, int rank, int size) {
  switch (o.kind) {
    case OpKind::AllGather:
      return o.count * static_cast<std::size_t>(size);
    case OpKind::Reduce:
      return rank == o.root ? o.count : 0;
    case OpKind::SendPair:
      return rank == o.other ? o.count : 0;
    default:
      return o.count;
  }
}

long reduced(const Operation& o, std::size_t at, int size) {
  long result = valueOf(0, at, o.number);
  for (int rank = 1; rank < size; ++rank) {
    const long value = valueOf(rank, at, o.number);
    result = o.op == ncclSum ? result + value : o.op == ncclMax ? std::max(result, value) : std::min(result, value);
  }
  return result;
}

long expected(const Operation& o, std::size_t at, int rank, int size) {
  switch (o.kind) {
    case OpKind::AllReduce:
    case OpKind::Reduce:
      return reduced(o, at, size);
    case OpKind::ReduceScatter:
      return reduced(o, static_cast<std::size_t>(rank) * o.count + at, size);
    case OpKind::AllGather:
      return valueOf(static_cast<int>(at / o.count), at % o.count, o.number);
    case OpKind::SendRing:
      return valueOf((rank + size - 1) % size, at, o.number);
    default:
      return valueOf(o.root, at, o.number);
  }
}

Operation operationOf(std::mt19937_64& random, int comm, int size, int number, bool fewKernels) {
  const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random() % bound); };
  Operation o;
  o.kind = kKinds[below(kKinds.size())];
  o.comm = comm;
  const std::size_t most = std::array<std::size_t, 4>{16, 1024, 4096, kMostElements}[below(4)];
  o.count = 1 + below(most);
  o.type = kTypes[below(kTypes.size())];
  o.op = kOperators[below(kOperators.size())];
  o.root = static_cast<int>(below(static_cast<std::size_t>(size)));
  o.other = (o.root + 1 + static_cast<int>(below(static_cast<std::size_t>(std::max(size - 1, 1))))) % size;
  o.number = number;
  if (fewKernels && o.type != ncclFloat32) {
    o.type = ncclInt32;
    o.op = ncclSum;
  }
  return o;
}

}  // namespace

std::vector<Operation> batchOf(unsigned long seed, int batch, const std::vector<int>& sizes, bool fewKernels) {
  std::mt19937_64 random(seed * 1000003 + static_cast<unsigned long>(batch));
  const std::size_t first = random() % sizes.size();
  std::vector<Operation> operations = {
      operationOf(random, static_cast<int>(first), sizes[first], 2 * batch, fewKernels)};
  if (sizes.size() > 1 && random() % 2 == 0) {
    const std::size_t second = (first + 1) % sizes.size();
    operations.push_back(operationOf(random, static_cast<int>(second), sizes[second], 2 * batch + 1, fewKernels));
  }
  return operations;
}

std::string nameOf(const Operation& o) {
  static constexpr std::array kNames = {"AllReduce", "AllGather", "ReduceScatter", "Broadcast",
                                        "Reduce",    "SendRing",  "SendPair"};
  std::string text = kNames[static_cast<std::size_t>(o.kind)];
  if (o.kind == OpKind::SendPair) text += " from " + std::to_string(o.root) + " to " + std::to_string(o.other);
  return text + " of " + std::to_string(o.count) + " elements";
}

bool takesPart(const Operation& o, int rank) {
  return o.kind != OpKind::SendPair || rank == o.root || rank == o.other;
}

OperationRun::~OperationRun() {
  cudaFree(input_);
  cudaFree(output_);
}

bool OperationRun::allocate(int size) {
  bytes_ = kMostElements * kMostElementBytes * static_cast<std::size_t>(size);
  return cudaMalloc(&input_, bytes_) == cudaSuccess && cudaMalloc(&output_, bytes_) == cudaSuccess;
}

ncclResult_t OperationRun::launch(const Operation& o, ncclComm_t comm, int rank, int size, cudaStream_t stream) {
  std::vector<unsigned char> values(inputs(o, size) * bytesOf(o.type));
  for (std::size_t i = 0; i < inputs(o, size); ++i) store(values.data(), i, o.type, valueOf(rank, i, o.number));
  if (cudaMemcpy(input_, values.data(), values.size(), cudaMemcpyHostToDevice) != cudaSuccess) return ncclSystemError;
  const std::size_t out = std::max(o.count, outputs(o, rank, size)) * bytesOf(o.type);
  if (cudaMemset(output_, kPoison, out) != cudaSuccess) return ncclSystemError;
  return call(o, comm, rank, size, stream);
}

ncclResult_t OperationRun::call(const Operation& o, ncclComm_t comm, int rank, int size, cudaStream_t stream) const {
  switch (o.kind) {
    case OpKind::AllReduce:
      return ncclAllReduce(input_, output_, o.count, o.type, o.op, comm, stream);
    case OpKind::AllGather:
      return ncclAllGather(input_, output_, o.count, o.type, comm, stream);
    case OpKind::ReduceScatter:
      return ncclReduceScatter(input_, output_, o.count, o.type, o.op, comm, stream);
    case OpKind::Broadcast:
      return ncclBroadcast(input_, output_, o.count, o.type, o.root, comm, stream);
    case OpKind::Reduce:
      return ncclReduce(input_, output_, o.count, o.type, o.op, o.root, comm, stream);
    case OpKind::SendPair:
      if (rank == o.root) return ncclSend(input_, o.count, o.type, o.other, comm, stream);
      return ncclRecv(output_, o.count, o.type, o.root, comm, stream);
    case OpKind::SendRing:
      break;
  }
  ncclResult_t result = ncclGroupStart();
  if (result == ncclSuccess) result = ncclSend(input_, o.count, o.type, (rank + 1) % size, comm, stream);
  if (result == ncclSuccess) result = ncclRecv(output_, o.count, o.type, (rank + size - 1) % size, comm, stream);
  const ncclResult_t ended = ncclGroupEnd();
  return result != ncclSuccess ? result : ended;
}

std::string OperationRun::check(const Operation& o, int rank, int size) const {
  const std::size_t n = outputs(o, rank, size);
  std::vector<unsigned char> values(n * bytesOf(o.type));
  if (n > 0 && cudaMemcpy(values.data(), output_, values.size(), cudaMemcpyDeviceToHost) != cudaSuccess)
    return "the result cannot be copied to the host";
  for (std::size_t i = 0; i < n; ++i) {
    const double is = load(values.data(), i, o.type);
    const auto shall = static_cast<double>(expected(o, i, rank, size));
    if (is != shall)
      return nameOf(o) + ": element " + std::to_string(i) + " is " + std::to_string(is) + ", not " +
             std::to_string(shall);
  }
  return {};
}

}  // namespace tutti::adversary
