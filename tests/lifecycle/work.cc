#include "lifecycle/work.h"

#include <algorithm>
#include <cstdint>

namespace lifecycle {

namespace {

constexpr std::size_t kMostBytes = 1 << 16;  // of one rank's part
constexpr int kPoison = 0xa5;

std::size_t bytesOf(ncclDataType_t type) {
  return type == ncclUint8 ? 1 : type == ncclInt32 || type == ncclFloat32 ? 4 : 8;
}

/// What a rank puts at a place: small, so that sums are exact in every type.
long valueOf(int rank, std::size_t at, long number) {
  return static_cast<long>((static_cast<std::size_t>(rank) * 5 + at * 7 + static_cast<std::size_t>(number)) % 13);
}

template <class T>
void put(std::vector<unsigned char>& values, std::size_t at, T value) {
  std::copy_n(reinterpret_cast<const unsigned char*>(&value), sizeof value, values.data() + at * sizeof value);
}

template <class T>
double get(const std::vector<unsigned char>& values, std::size_t at) {
  T value{};
  std::copy_n(values.data() + at * sizeof value, sizeof value, reinterpret_cast<unsigned char*>(&value));
  return static_cast<double>(value);
}

void store(std::vector<unsigned char>& values, std::size_t at, ncclDataType_t type, long value) {
  if (type == ncclInt32) put(values, at, static_cast<std::int32_t>(value));
  if (type == ncclInt64) put(values, at, static_cast<std::int64_t>(value));
  if (type == ncclFloat32) put(values, at, static_cast<float>(value));
  if (type == ncclFloat64) put(values, at, static_cast<double>(value));
  if (type == ncclUint8) put(values, at, static_cast<std::uint8_t>(value));
}

double load(const std::vector<unsigned char>& values, std::size_t at, ncclDataType_t type) {
  if (type == ncclInt32) return get<std::int32_t>(values, at);
  if (type == ncclInt64) return get<std::int64_t>(values, at);
  if (type == ncclFloat32) return get<float>(values, at);
  if (type == ncclFloat64) return get<double>(values, at);
  return get<std::uint8_t>(values, at);
}

std::size_t inputs(const Op& op, int rank, int size) {
  const std::size_t all = op.count * static_cast<std::size_t>(size);
  if (op.kind == OpKind::ReduceScatter || op.kind == OpKind::AlltoAll) return all;
  if (op.kind == OpKind::Scatter) return rank == op.root ? all : 0;
  return op.count;
}

std::size_t outputs(const Op& op, int rank, int size) {
  const std::size_t all = op.count * static_cast<std::size_t>(size);
  if (op.kind == OpKind::AllGather || op.kind == OpKind::AlltoAll) return all;
  if (op.kind == OpKind::Gather) return rank == op.root ? all : 0;
  if (op.kind == OpKind::Reduce) return rank == op.root ? op.count : 0;
  return op.count;
}

long reduced(const Op& op, std::size_t at, int size) {
  long result = valueOf(0, at, op.number);
  for (int rank = 1; rank < size; ++rank) {
    const long value = valueOf(rank, at, op.number);
    result = op.op == ncclSum ? result + value : op.op == ncclMax ? std::max(result, value) : std::min(result, value);
  }
  return result;
}

long expected(const Op& op, std::size_t at, int rank, int size) {
  const std::size_t mine = static_cast<std::size_t>(rank) * op.count;
  const int block = static_cast<int>(at / op.count);
  const std::size_t within = at % op.count;
  switch (op.kind) {
    case OpKind::AllReduce:
    case OpKind::Reduce:
      return reduced(op, at, size);
    case OpKind::ReduceScatter:
      return reduced(op, mine + at, size);
    case OpKind::AllGather:
    case OpKind::Gather:
      return valueOf(block, within, op.number);
    case OpKind::Broadcast:
      return valueOf(op.root, at, op.number);
    case OpKind::Ring:
      return valueOf((rank + size - 1) % size, at, op.number);
    case OpKind::AlltoAll:
      return valueOf(block, mine + within, op.number);
    case OpKind::Scatter:
      return valueOf(op.root, mine + at, op.number);
  }
  return 0;
}

}  // namespace

bool Slot::allocate(int ranks, cudaStream_t stream) {
  stream_ = stream;
  bytes_ = kMostBytes * static_cast<std::size_t>(ranks);
  return cudaMalloc(&in_, bytes_) == cudaSuccess && cudaMalloc(&out_, bytes_) == cudaSuccess;
}

void Slot::release() {
  cudaFree(in_);
  cudaFree(out_);
  in_ = out_ = nullptr;
}

bool Slot::poison() {
  const std::size_t bytes = std::max<std::size_t>(1, outputs(op_, rank_, size_) * bytesOf(op_.type));
  return cudaMemsetAsync(out_, kPoison, bytes, stream_) == cudaSuccess;
}

bool Slot::prepare(const Op& op, int comm, int rank, int size) {
  op_ = op;
  comm_ = comm;
  rank_ = rank;
  size_ = size;
  busy_ = true;
  const std::size_t count = inputs(op, rank, size);
  values_.assign(count * bytesOf(op.type), 0);
  for (std::size_t i = 0; i < count; ++i) store(values_, i, op.type, valueOf(rank, i, op.number));
  return poison() &&
         cudaMemcpyAsync(in_, values_.data(), values_.size(), cudaMemcpyHostToDevice, stream_) == cudaSuccess;
}

ncclResult_t Slot::call(ncclComm_t comm) const {
  const Op& o = op_;
  switch (o.kind) {
    case OpKind::AllReduce:
      return ncclAllReduce(in_, out_, o.count, o.type, o.op, comm, stream_);
    case OpKind::Reduce:
      return ncclReduce(in_, out_, o.count, o.type, o.op, o.root, comm, stream_);
    case OpKind::ReduceScatter:
      return ncclReduceScatter(in_, out_, o.count, o.type, o.op, comm, stream_);
    case OpKind::AllGather:
      return ncclAllGather(in_, out_, o.count, o.type, comm, stream_);
    case OpKind::Broadcast:
      return ncclBroadcast(in_, out_, o.count, o.type, o.root, comm, stream_);
    case OpKind::AlltoAll:
      return ncclAlltoAll(in_, out_, o.count, o.type, comm, stream_);
    case OpKind::Gather:
      return ncclGather(in_, out_, o.count, o.type, o.root, comm, stream_);
    case OpKind::Scatter:
      return ncclScatter(in_, out_, o.count, o.type, o.root, comm, stream_);
    case OpKind::Ring:
      break;
  }
  ncclResult_t result = ncclGroupStart();
  const auto add = [&](ncclResult_t one) {
    if (result == ncclSuccess && one != ncclInProgress) result = one;
  };
  add(ncclSend(in_, o.count, o.type, (rank_ + 1) % size_, comm, stream_));
  add(ncclRecv(out_, o.count, o.type, (rank_ + size_ - 1) % size_, comm, stream_));
  const ncclResult_t ended = ncclGroupEnd();
  return result != ncclSuccess ? result : ended;
}

std::string Slot::look() {
  busy_ = false;
  const std::size_t count = outputs(op_, rank_, size_);
  std::vector<unsigned char> values(count * bytesOf(op_.type));
  const bool copied =
      cudaMemcpyAsync(values.data(), out_, values.size(), cudaMemcpyDeviceToHost, stream_) == cudaSuccess &&
      cudaStreamSynchronize(stream_) == cudaSuccess && poison();
  if (!copied) return "the result cannot be copied to the host";
  for (std::size_t i = 0; i < count; ++i) {
    const double is = load(values, i, op_.type);
    const auto shall = static_cast<double>(expected(op_, i, rank_, size_));
    if (is != shall) {
      return "element " + std::to_string(i) + " of " + std::to_string(count) + " is " + std::to_string(is) + ", not " +
             std::to_string(shall);
    }
  }
  return {};
}

}  // namespace lifecycle
