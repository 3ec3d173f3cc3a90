// Reduction operators: what the API's number means to a kernel, and the operators that users create.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "base/status.h"
#include "comm/plan/op.h"
#include "nccl.h"

namespace tutti::comm {

/// The user-created operators of one communicator. Any thread.
class RedOpTable {
 public:
  /// `salt` differs between communicators, so that an operator of another one is (almost) never known here.
  explicit RedOpTable(std::uint64_t salt) : salt_(salt) {}

  /// HostImmediate reads `scalar` now; Device keeps the address for the kernels. Errors: ncclInternalError for an
  /// immediate scalar of an unknown type, ncclInvalidArgument for no scalar.
  Result<ncclRedOp_t> create(const void* scalar, ncclDataType_t type, ncclScalarResidence_t residence);
  Status destroy(ncclRedOp_t op);
  bool exists(ncclRedOp_t op) const;

  /// What a kernel does for `op` on `type` among `nRanks`. ncclInvalidArgument for an operator of another type.
  Result<Reduction> resolve(ncclRedOp_t op, ncclDataType_t type, int nRanks) const;

 private:
  struct UserOp {
    ncclDataType_t type = ncclInt8;
    Reduction reduction;
  };
  std::uint32_t maskOf() const;
  ncclRedOp_t handleOf(std::size_t index) const;
  std::optional<std::size_t> indexOf(ncclRedOp_t op) const;

  std::uint64_t salt_;
  mutable std::mutex mutex_;
  std::vector<std::optional<UserOp>> ops_;
};

/// 1/nRanks in the given floating type, as kernels multiply with it.
std::uint64_t reciprocalBits(int nRanks, ncclDataType_t type);

}  // namespace tutti::comm
