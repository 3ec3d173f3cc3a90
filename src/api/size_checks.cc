#include "api/size_checks.h"

#include <fmt/format.h>

#include <bit>
#include <string>

#include "base/log.h"

namespace tutti::api {
namespace {

using comm::ApiFunc;

/// Whose blocks a buffer of the call holds, in words; empty where it holds one vector.
std::string_view blocksOf(ApiFunc func) {
  switch (func) {
    case ApiFunc::AllGather:
    case ApiFunc::Gather:
      return "from each of";
    case ApiFunc::ReduceScatter:
    case ApiFunc::AlltoAll:
    case ApiFunc::Scatter:
      return "for each of";
    case ApiFunc::AllReduce:
    case ApiFunc::Reduce:
    case ApiFunc::Broadcast:
    case ApiFunc::Send:
    case ApiFunc::Recv:
      return {};
  }
  return {};
}

/// Factors of a size whose product may be more than 64 bits hold.
struct Product {
  std::uint64_t count;
  std::uint64_t elementBytes;
  std::uint64_t blocks;  ///< below 2^31
  bool tooMuch() const { return count > kMostBytes / elementBytes / blocks; }
};

/// "2^66 bytes", or the power of two below it.
std::string textOf(const Product& product) {
  const auto log = [](std::uint64_t value) { return static_cast<int>(std::bit_width(value)) - 1; };
  // Elements of all blocks take up to 95 bits; the size of one is a power of two.
  const std::uint64_t low = product.count * product.blocks;
  const std::uint64_t carry = (product.count & 0xffffffff) * product.blocks >> 32;
  const std::uint64_t high = ((product.count >> 32) * product.blocks + carry) >> 32;
  const int power = (high != 0 ? 64 + log(high) : log(low)) + log(product.elementBytes);
  const bool exact = std::popcount(high) + std::popcount(low) == 1;
  return fmt::format("{}2^{} bytes", exact ? "" : "more than ", power);
}

Status refuse(std::string_view label, const Product& product, ncclDataType_t type, std::string_view ranks) {
  return fail(ncclInvalidArgument, "{} of {} elements of {}{} is {}; at most 2^60 are possible", label, product.count,
              comm::datatypeName(type), ranks, textOf(product));
}

}  // namespace

Status checkOpSize(const comm::Op& op, int nRanks) {
  const std::string_view blocks = blocksOf(op.func);
  const Product product{op.count, comm::datatypeBytes(op.datatype),
                        blocks.empty() ? 1 : static_cast<std::uint64_t>(nRanks)};
  if (!product.tooMuch()) return {};
  const std::string ranks = blocks.empty() ? "" : fmt::format(" {} {} ranks", blocks, nRanks);
  return refuse(comm::apiFuncName(op.func), product, op.datatype, ranks);
}

Status checkElements(std::string_view label, std::size_t count, ncclDataType_t type) {
  const Product product{count, comm::datatypeBytes(type), 1};
  return product.tooMuch() ? refuse(label, product, type, "") : Status();
}

Status checkBytes(std::string_view label, std::size_t bytes) {
  if (bytes <= kMostBytes) return {};
  return fail(ncclInvalidArgument, "{} of {} bytes; at most 2^60 are possible", label, bytes);
}

}  // namespace tutti::api
