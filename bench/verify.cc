#include "bench/verify.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "bench/datatypes.h"
#include "bench/world.h"

namespace bench {
namespace {

// Inputs repeat after a prime number of elements, so that a chunk that lands in the wrong place is seen, and buffers of
// any size are made and compared by the tile.
constexpr std::size_t kPeriod = 1009;
constexpr std::size_t kPeriodsPerTile = 256;
constexpr std::size_t kTile = kPeriod * kPeriodsPerTile;

/// Up to so many ranks sums of 8-bit floats are exact, whatever their order.
constexpr int kExactFp8Ranks = 8;

/// Small integers: exact in every type, and so are their sums and products over the ranks people run here.
double inputValue(std::size_t i, int rank, const Call& call, bool reduces) {
  const auto r = static_cast<std::size_t>(rank);
  const ncclRedOp_t op = call.op;
  if (!reduces) return static_cast<double>((i * 7 + r * 11) % 15);
  if (op == ncclProd) return rank < 6 ? static_cast<double>((i + r) % 2 + 1) : 1;
  // e5m2 holds whole numbers up to 8.
  if ((op == ncclSum || op == ncclAvg) && isFp8(call.type)) return static_cast<double>((i * 3 + r * 5) % 7 % 2);
  if (op == ncclSum || op == ncclAvg) return static_cast<double>((i * 3 + r * 5) % 4);
  return static_cast<double>((i * 7 + r * 11) % 13);
}

double reducedValue(std::size_t i, const Call& call) {
  double result = inputValue(i, 0, call, true);
  for (int r = 1; r < call.ranks; ++r) {
    const double value = inputValue(i, r, call, true);
    if (call.op == ncclProd) {
      result *= value;
    } else if (call.op == ncclMax) {
      result = std::max(result, value);
    } else if (call.op == ncclMin) {
      result = std::min(result, value);
    } else {
      result += value;
    }
  }
  if (call.op != ncclAvg) return result;
  return isFloating(call.type) ? result / call.ranks : std::trunc(result / call.ranks);
}

/// A tile, or the few periods that cover `elements`, and one period more, so that any phase has as much behind it.
template <class Value>
std::vector<char> makeTile(ncclDataType_t type, std::size_t elements, Value value) {
  const std::size_t size = typeSize(type);
  const std::size_t periods = std::min(kPeriodsPerTile, (elements + kPeriod - 1) / kPeriod);
  std::vector<char> tile((periods + 1) * kPeriod * size);
  for (std::size_t i = 0; i < kPeriod; ++i) encode(type, value(i), tile.data(), i);
  for (std::size_t p = 1; p <= periods; ++p) {
    std::memcpy(tile.data() + p * kPeriod * size, tile.data(), kPeriod * size);
  }
  return tile;
}

std::uint64_t compare(const char* got, const char* want, std::size_t n, const Call& call, double relative) {
  if (std::memcmp(got, want, n * typeSize(call.type)) == 0) return 0;
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double a = decode(call.type, got, i);
    const double b = decode(call.type, want, i);
    if (!(std::fabs(a - b) <= relative * std::max(std::fabs(b), 1.0))) ++wrong;
  }
  return wrong;
}

}  // namespace

void fillInput(void* device, std::size_t elements, const Call& call, int rank) {
  const std::size_t size = typeSize(call.type);
  const bool reduces = call.op != ncclNumOps;
  const std::vector<char> tile =
      makeTile(call.type, elements, [&](std::size_t i) { return inputValue(i, rank, call, reduces); });
  for (std::size_t done = 0; done < elements; done += kTile) {
    const std::size_t n = std::min(kTile, elements - done);
    CUDA_CHECK(cudaMemcpy(static_cast<char*>(device) + done * size, tile.data(), n * size, cudaMemcpyHostToDevice));
  }
}

std::uint64_t countWrong(const Collective& collective, const Call& call, std::size_t recvElements) {
  const std::size_t size = typeSize(call.type);
  const bool inexact = call.op == ncclAvg || (isFp8(call.type) && call.ranks > kExactFp8Ranks);
  const double relative = collective.reduces && inexact ? tolerance(call.type, call.ranks) : 0;
  std::vector<char> got(std::min(kTile, call.count) * size);
  std::uint64_t wrong = 0;
  for (std::size_t block = 0; call.count != 0 && block < recvElements / call.count; ++block) {
    const Collective::Origin origin = collective.origin(call, block);
    if (origin.rank == kUntouched) continue;
    const std::vector<char> want = makeTile(call.type, call.count, [&](std::size_t i) {
      return origin.rank == kReduced ? reducedValue(i, call) : inputValue(i, origin.rank, call, collective.reduces);
    });
    const char* base = static_cast<const char*>(call.recv) + block * call.count * size;
    for (std::size_t done = 0; done < call.count; done += kTile) {
      const std::size_t n = std::min(kTile, call.count - done);
      CUDA_CHECK(cudaMemcpy(got.data(), base + done * size, n * size, cudaMemcpyDeviceToHost));
      const std::size_t phase = (origin.firstElement + done) % kPeriod;
      wrong += compare(got.data(), want.data() + phase * size, n, call, relative);
    }
  }
  return wrong;
}

std::uint64_t countChanged(const Call& call, std::size_t elements) {
  const std::size_t size = typeSize(call.type);
  const bool reduces = call.op != ncclNumOps;
  const std::vector<char> want =
      makeTile(call.type, elements, [&](std::size_t i) { return inputValue(i, call.rank, call, reduces); });
  std::vector<char> got(std::min(kTile, elements) * size);
  std::uint64_t changed = 0;
  for (std::size_t done = 0; done < elements; done += kTile) {
    const std::size_t n = std::min(kTile, elements - done);
    CUDA_CHECK(
        cudaMemcpy(got.data(), static_cast<const char*>(call.send) + done * size, n * size, cudaMemcpyDeviceToHost));
    changed += compare(got.data(), want.data(), n, call, 0);
  }
  return changed;
}

}  // namespace bench
