// The sending end of a connection over verbs: writes where the receiver has granted it.
#pragma once

#include "transport/net/ib/end.h"

namespace tutti::net::ib {

class IbSender final : public IbEnd {
 public:
  /// The link's memory is the ring of grants (GrantRow).
  explicit IbSender(std::unique_ptr<IbLink> link);

  static constexpr std::size_t kMemoryBytes = sizeof(GrantRow) * kIbRows;
  /// Work requests of a queue pair: a row takes one for each of its messages and one that announces it.
  static constexpr std::uint32_t kSends = 256;

  /// Null: the receiver has granted no message with this tag yet, or too much is under way. Errors: those of the
  /// connection, of a receiver that has left too; ncclInvalidUsage (the message is longer than what the receiver has
  /// room for), ncclInvalidArgument (more than 2^31 - 1 bytes).
  Result<IbRequest*> isend(const plugin::NetBuffer& message);

 private:
  /// The messages of a row, in the order of its grants.
  struct Row {
    std::uint32_t count = 0;
    std::uint32_t left = 0;   ///< completions to come
    std::uint32_t chain = 0;  ///< work requests on each of its queue pairs
    std::array<IbRequest*, kMostRowMessages> requests{};
    std::array<plugin::NetBuffer, kMostRowMessages> messages{};
  };

  void completed(std::size_t pair, const ibv_wc& completion) override;
  std::string openText() const override;
  bool needsPeer(bool failed) const override;
  RowsSeen rowsSeen() const override;
  Status repost(const RowsSeen& peers, const Strands& strands) override;
  Status progress() override;
  Status postAgain();
  Grant* grants(std::uint64_t row) const {
    return reinterpret_cast<GrantRow*>(link_->memory->data())[row % kIbRows].grants.data();
  }
  Row& at(std::uint64_t row) { return rows_[row % kIbRows]; }
  /// Messages of a row, once all of its grants are there; 0: not yet.
  std::uint32_t granted(std::uint64_t row) const;
  static Status checkLength(const plugin::NetBuffer& message);
  Status checkFits(const Grant& grant, const plugin::NetBuffer& message);
  bool hasRoomFor(std::uint64_t row, std::uint32_t chain) const;
  std::uint32_t chainOf(const plugin::NetBuffer& message, std::uint32_t count) const;
  bool announcesApart(std::size_t bytes) const;
  Status postRow(std::uint64_t row);
  Status postOn(std::uint64_t number, std::size_t pair, std::size_t k);

  std::uint64_t row_ = 0;  ///< the one that is being matched
  std::array<Row, kIbRows> rows_;
  std::uint32_t matched_ = 0;  ///< messages of the current row
  std::uint64_t again_ = 0;    ///< the next of those that are to be posted again; row_: there are none
  bool adaptive_;              ///< packets may overtake each other
};

}  // namespace tutti::net::ib
