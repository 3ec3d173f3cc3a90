// The 128 bytes of an ncclUniqueId: where the root listens and the secret that lets a rank in.
#pragma once

#include <cstdint>

#include "base/socket/address.h"
#include "base/status.h"
#include "bootstrap/link/crypto.h"
#include "nccl.h"

namespace tutti::bootstrap {

/// Which communicator an id was made to grow; none: size 0.
struct Lineage {
  std::int32_t size = 0;   ///< its number of ranks
  std::uint64_t name = 0;  ///< Bootstrap::commHash()
  friend bool operator==(const Lineage&, const Lineage&) = default;
};

/// What an ncclUniqueId says. Layout in docs/bootstrap.md.
struct UniqueId {
  Address root;               ///< where the root listens (or will listen, where `fixedAddress`)
  Key secret{};               ///< all zero where `fixedAddress`
  bool fixedAddress = false;  ///< made from NCCL_COMM_ID: no secret inside, rank 0 starts the root
  Lineage parent;             ///< of ncclCommGetUniqueId
};

/// Packs the fields; bytes without a meaning are zero, so that equal ids are equal bytes.
ncclUniqueId encodeUniqueId(const UniqueId& id);

/// Errors: ncclInvalidArgument where the bytes are no id of this library (never filled, cut while being passed on) or
/// speak another protocol version.
Result<UniqueId> decodeUniqueId(const ncclUniqueId& bytes);

}  // namespace tutti::bootstrap
