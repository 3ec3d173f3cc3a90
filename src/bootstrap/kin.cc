#include "bootstrap/kin.h"

#include <algorithm>
#include <cstring>

#include "base/log.h"
#include "bootstrap/join_options.h"
#include "bootstrap/joiner.h"
#include "bootstrap/link/poller.h"
#include "bootstrap/loop/connection_loop.h"

namespace tutti::bootstrap {

std::uint64_t Kin::commHash() const {
  return nameOfComm(key);
}

Result<Introduction> introduce(const Joined& joined) {
  Introduction self{joined.self, {}};
  Address on = joined.self.listen;
  on.setPort(0);
  ASSIGN(self.listener, Listener::listen(on));
  self.entry.listen = self.listener.address();
  return self;
}

Result<Kin> kinOf(std::span<const Relative> all, int self, const Key& parentKey) {
  const Relative& own = all[static_cast<std::size_t>(self)];
  Kin kin;
  kin.number = own.number;
  for (int rank = 0; rank < static_cast<int>(all.size()); ++rank) {
    const Relative& other = all[static_cast<std::size_t>(rank)];
    if (other.number != own.number) {
      return fail(
          ncclInvalidUsage,
          "Bootstrap: {} makes split {} of this communicator, {} its split {}: all ranks must call ncclCommSplit "
          "as often, and in the same order",
          rankText(self, textOf(own.entry.host), own.entry.pid), own.number,
          rankText(rank, textOf(other.entry.host), other.entry.pid), other.number);
    }
    if (other.color == own.color) kin.origins.push_back(rank);
  }
  const auto keyOf = [&](int rank) { return all[static_cast<std::size_t>(rank)].key; };
  std::stable_sort(kin.origins.begin(), kin.origins.end(), [&](int a, int b) { return keyOf(a) < keyOf(b); });
  for (const int rank : kin.origins) kin.table.push_back(all[static_cast<std::size_t>(rank)].entry);
  kin.rank = static_cast<int>(std::find(kin.origins.begin(), kin.origins.end(), self) - kin.origins.begin());
  kin.key = deriveKey(parentKey, "tutti split",
                      {std::as_bytes(std::span(&own.number, 1)), std::as_bytes(std::span(&own.color, 1))});
  return kin;
}

Result<Joined> joinKin(const JoinOptions& options, Kin kin) {
  TRY(initCrypto());
  raiseFileLimit();
  Joined joined;
  joined.rank = kin.rank;
  joined.nRanks = kin.size();
  joined.place = treePlace(joined.nRanks, 1, joined.rank);
  joined.self = kin.table[static_cast<std::size_t>(kin.rank)];
  joined.key = kin.key;
  joined.commHash = kin.commHash();
  TRY(startLoop(joined, options, std::move(kin.listener), false));
  const int parent = joined.place.parent;
  const Address address = parent < 0 ? Address() : kin.table[static_cast<std::size_t>(parent)].listen;
  joined.loop->setTable(std::move(kin.table));
  joined.loop->admit(joined.key);
  const Status status = connectParent(joined, address, Deadline::in(options.settings.timeout));
  if (status.ok()) return joined;
  joined.loop->announceLastError(status);
  joined.loop->stop();
  return status;
}

}  // namespace tutti::bootstrap
