// The receiving end of a connection over verbs: grants where the sender may write.
#pragma once

#include <deque>

#include "transport/net/ib/end.h"
#include "transport/net/ib/flush.h"

namespace tutti::net::ib {

class IbReceiver final : public IbEnd {
 public:
  /// The link's memory is the table of sizes (SizeRow), then the rows as they are written to the sender (GrantRow).
  /// `flush` may be null: nothing that is received needs it.
  IbReceiver(std::unique_ptr<IbLink> link, std::unique_ptr<FlushPairs> flush);

  static constexpr std::size_t kGrantsAt = sizeof(SizeRow) * kIbRows;
  static constexpr std::size_t kMemoryBytes = kGrantsAt + sizeof(GrantRow) * kIbRows;
  /// Work requests of a queue pair: grants, of which every 16th tells that it has gone.
  static constexpr std::uint32_t kSends = 128;
  static constexpr std::uint32_t kReceives = kIbRows;

  /// Grants 1 to kMostRowMessages messages. Null: as many receives as may be are under way. When the peer has closed
  /// its end in order, what is posted is never done, and no error. Errors: those of the connection.
  Result<IbRequest*> irecv(std::span<const plugin::NetBuffer> messages);
  /// Null: nothing was received, or nothing needs it.
  Result<IbRequest*> iflush(std::span<const plugin::NetBuffer> messages);

 private:
  void completed(std::size_t pair, const ibv_wc& completion) override;
  void dropped(const ibv_wc& completion) override;
  bool awaitsMore() const override { return receiving_ > 0; }
  RowsSeen rowsSeen() const override;
  Status leave(const std::bitset<kMostChildren>& left) override;
  Status repost(const RowsSeen& peers, const Strands& strands) override;
  std::string openText() const override;
  Status progress() override;
  Status lookAtFlushes();
  Status postReceives(std::uint64_t row);
  void writeGrants(std::span<const plugin::NetBuffer> messages);
  Status postGrants(std::uint64_t row, std::uint32_t count);
  const GrantRow& grantsOf(std::uint64_t row) const {
    return reinterpret_cast<const GrantRow*>(link_->memory->data() + kGrantsAt)[row % kIbRows];
  }
  Status awaitRoom();
  void takeSizes(IbRequest& request) const;

  std::uint64_t row_ = 0;                   ///< the next
  std::array<IbRequest*, kIbRows> rows_{};  ///< null: free
  std::uint32_t receiving_ = 0;             ///< receives posted whose end is not known
  /// Since when a receive has found no room for its grants; nothing: it has some.
  std::optional<SteadyClock::time_point> fullSince_;
  SteadyClock::time_point lookedAt_{};  ///< for room, while fullSince_ is set
  std::unique_ptr<FlushPairs> flush_;   ///< null: nothing needs it
  std::deque<IbRequest*> flushing_;     ///< in order; `row` is the flush's number
};

}  // namespace tutti::net::ib
