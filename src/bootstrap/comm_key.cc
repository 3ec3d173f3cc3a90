#include "bootstrap/comm_key.h"

#include <set>

#include "base/log.h"
#include "bootstrap/unique_id.h"

namespace tutti::bootstrap {

Key rootKey(const UniqueId& id, const std::string& commKey) {
  if (!id.fixedAddress) return deriveKey(id.secret, "tutti root");
  return commKey.empty() ? keyFromText("tutti open root", "") : keyFromText("tutti comm key", commKey);
}

Status checkCommKey(const std::string& commKey) {
  constexpr std::size_t kLength = 16;
  constexpr std::size_t kDifferent = 8;
  const std::size_t different = std::set<char>(commKey.begin(), commKey.end()).size();
  if (commKey.empty() || (commKey.size() >= kLength && different >= kDifferent)) return Status();
  return fail(
      ncclInvalidUsage,
      "Bootstrap: TUTTI_COMM_KEY has {} characters, {} of them different: who overhears a connection could guess "
      "it. It needs at least {} and {}; make one with: head -c 24 /dev/urandom | base64",
      commKey.size(), different, kLength, kDifferent);
}

}  // namespace tutti::bootstrap
