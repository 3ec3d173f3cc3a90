#include "comm/state/revocation.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/log.h"
#include "comm/state/communicator.h"

namespace tutti::comm {

namespace {

/// Shorter than what ranks say of stalls.
constexpr std::array<char, 16> kNotice{"tutti: revoked"};

}  // namespace

std::span<const std::byte> RevokedPeers::notice() {
  return std::as_bytes(std::span(kNotice));
}

bool RevokedPeers::hear(int rank, std::span<const std::byte> said) {
  if (said.size() != kNotice.size() || std::memcmp(said.data(), kNotice.data(), said.size()) != 0) return false;
  const std::lock_guard lock(mutex_);
  if (std::find(ranks_.begin(), ranks_.end(), rank) == ranks_.end()) ranks_.push_back(rank);
  return true;
}

bool RevokedPeers::contains(int rank) const {
  const std::lock_guard lock(mutex_);
  return std::find(ranks_.begin(), ranks_.end(), rank) != ranks_.end();
}

std::optional<int> RevokedPeers::hindering(Time now, bool waits, milliseconds grace) {
  const std::lock_guard lock(mutex_);
  if (ranks_.empty() || !waits) {
    waitsSince_.reset();
    return std::nullopt;
  }
  if (!waitsSince_) waitsSince_ = now;
  if (now - *waitsSince_ < grace) return std::nullopt;
  return ranks_.front();
}

Status checkNotRevoked(const ncclComm& comm, std::string_view label) {
  if (!comm.progress.revocation->begun()) return {};
  return fail(ncclInvalidUsage,
              "{}: communicator was revoked by ncclCommRevoke: it moves no data any more. Make another one, and end "
              "this one with ncclCommDestroy",
              label);
}

}  // namespace tutti::comm
