// What both ends of a connection over verbs have in common: completions, what went wrong, whether the peer is there.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plugin/network/net.h"
#include "transport/net/ib/agreement.h"
#include "transport/net/ib/control.h"
#include "transport/net/ib/nic/registrations.h"
#include "transport/net/ib/queue_pairs.h"
#include "transport/net/ib/trials.h"
#include "transport/net/ib/wire.h"

namespace tutti::net::ib {

class IbEnd;

/// One message that is sent, or one receive of several messages, under way.
struct IbRequest {
  IbEnd* end = nullptr;
  bool busy = false;       ///< belongs to the caller, who has not heard yet that it is done
  std::uint32_t left = 0;  ///< completions to come
  std::uint64_t row = 0;
  std::uint32_t count = 1;  ///< messages
  std::array<std::uint32_t, kMostRowMessages> bytes{};
  bool done() const { return left == 0; }
};

/// What set-up leaves of a connection.
struct IbLink {
  std::vector<const IbPort*> ports;
  std::unique_ptr<ControlSocket> control;
  std::unique_ptr<EndMemory> memory;  ///< that the peer writes
  std::unique_ptr<EndMemory> sizes;   ///< of a sender: SizeRow of each row, to be written to the receiver
  std::unique_ptr<QueuePairs> pairs;
  IbOptions options;

  /// What the peer is told of this end.
  SideBlock describe() const;
};

/// A registration: of the same memory with each port. Null: with a port whose NIC has failed.
struct IbRegistration {
  std::array<ibv_mr*, kMostChildren> regions{};
};

/// One end. isend, irecv and test from one thread at a time; registrations beside them.
class IbEnd : private AgreementEnd {
 public:
  ~IbEnd() override;
  IbEnd(const IbEnd&) = delete;
  IbEnd& operator=(const IbEnd&) = delete;

  /// Whether the request, one of this end's, is done. Errors stick.
  Result<bool> test(IbRequest& request, std::span<int> sizes);

  Result<IbRegistration*> registerMemory(const MemoryRange& range);
  Status deregister(IbRegistration* registration);

 protected:
  IbEnd(std::unique_ptr<IbLink> link, Agreement::Role role);

  /// What a work request was, in its id: completions with an error tell nothing else.
  enum class Work : std::uint8_t { Row, Grant };
  static std::uint64_t idOf(Work work, std::uint32_t number) { return static_cast<std::uint64_t>(work) << 32 | number; }
  static Work workOf(std::uint64_t id) { return static_cast<Work>(id >> 32); }
  static std::uint32_t numberOf(std::uint64_t id) { return static_cast<std::uint32_t>(id); }

  /// A work request of queue pair `pair` is done.
  virtual void completed(std::size_t pair, const ibv_wc& completion) = 0;
  /// It has failed.
  virtual void dropped(const ibv_wc& completion) { static_cast<void>(completion); }
  /// Of queue pairs that are out of order: whether something that counts is still to come.
  virtual bool awaitsMore() const { return false; }
  /// Ports of this end that may have queue pairs again; now there are none.
  virtual Status leave(const std::bitset<kMostChildren>& left) {
    static_cast<void>(left);
    return {};
  }
  /// The rows that are open go again: the peer has these.
  virtual Status repost(const RowsSeen& peers, const Strands& strands) = 0;
  /// What an end has under way besides, with queue pairs or without.
  virtual Status progress() { return {}; }
  /// Whether an end that has this under way cannot do without a peer that has left in order. `failed`: some of its work
  /// has failed.
  virtual bool needsPeer(bool failed) const {
    static_cast<void>(failed);
    return false;
  }
  /// What it waits for its peer to do: "open: 3 receives with room for 96 bytes".
  virtual std::string openText() const = 0;

  IbRequest* takeRequest();
  static void giveBack(IbRequest& request) { request.busy = false; }
  Status usable();
  /// Whether something can be posted; goes on with an agreement that is under way. Errors: those of the connection.
  Result<bool> carries();
  /// Takes what the NICs have done, and looks after the rest: of a request that is open, or of room that is awaited.
  Status advance();
  /// Nothing was there to be done. Looks at peer and NICs now and then.
  Status idle();
  /// Posts a chain and takes its room. A strand that refuses it may be one that the connection goes on without: then
  /// what was to be posted goes again. Errors: ncclSystemError.
  Status post(std::size_t pair, ibv_send_wr& chain, std::uint32_t requests);
  /// The same of any call: what refused it.
  Status refusedWith(std::size_t pair, const char* call, int error);
  /// What strands besides `pair` can carry goes on; else the connection ends with this. Errors: ncclSystemError.
  Status loseOrBreak(std::size_t pair, const std::string& why);
  /// A strand in use has failed since the last agreement.
  bool failsSomewhere() const;
  Status breakWith(Status why) { return broken_ = why; }
  /// An agreement is under way: there are no queue pairs.
  bool halted() const { return agreement_ != nullptr && agreement_->halted(); }
  /// Whether it may go on without a port.
  bool outlivesPorts() const { return agreement_ != nullptr; }
  /// Whether the connection goes on without these strands, which have failed.
  bool goesOnWithout(const Strands& strands, const std::string& why);
  /// Which queue pairs a row uses: the k-th.
  std::size_t pairOf(std::uint64_t row, std::size_t k) const {
    return active_[(row * pairsInUse_ + k) % active_.size()];
  }
  std::size_t pairsInUse() const { return pairsInUse_; }
  std::bitset<kMostChildren> portsOf(const Strands& strands) const;
  std::string place() const;
  /// "sending" or "receiving"
  std::string_view verb() const { return role_ == Agreement::Role::Sender ? "sending" : "receiving"; }
  /// "rank 0 …, was sending to rank 1 …"
  std::string deed() const;

  std::unique_ptr<IbLink> link_;

 private:
  bool drained() override;
  Status stopped(const Strands& left) override { return leave(portsOf(left)); }
  SideBlock side() const override { return link_->describe(); }
  Status resume(const Strands& strands, const RowsSeen& peers) override;

  void use(const Strands& strands);
  Status agree();
  Result<bool> takeAll();
  Status take(std::size_t port, const ibv_wc& completion);
  Status failedWith(std::size_t port, const ibv_wc& completion);
  Status look();
  std::uint64_t healthChanges() const;
  Status lookAtNics();
  Status lookAtPort(std::size_t port);
  Status lookAtQueuePairs();
  Status onPeer();
  Status hear();
  void tryPaths();
  Strands untried() const;
  std::string failure() const;
  Status onFarewell();
  Status breakQuietly(const std::string& why);

  const Agreement::Role role_;
  std::vector<std::size_t> active_;  ///< queue pairs that rows take turns on
  std::size_t pairsInUse_ = 0;
  std::array<IbRequest, std::size_t{kIbRows} * kMostRowMessages> requests_;
  std::size_t nextRequest_ = 0;
  std::unique_ptr<Agreement> agreement_;  ///< null: the connection ends with any of its strands
  std::unique_ptr<PathTrials> trials_;    ///< null: strands that are lost stay so
  Status broken_;
  std::uint32_t idle_ = 0;  ///< tests that found nothing
  std::uint64_t healthSeen_ = 0;
  bool anyPortDown_ = false;
  /// Since when a port is down without which this end cannot go on; nothing: there is none. An end that had nothing to
  /// do while the port went down counts from when it saw that.
  std::optional<SteadyClock::time_point> stuckSince_;
  bool lastResort_ = false;  ///< strands are in use untried, for there were no others
  SteadyClock::time_point lookAgain_{};
  std::string suspicion_;  ///< of the peer: reported unless it turns out to have left
  Deadline suspectUntil_ = Deadline::never();
};

}  // namespace tutti::net::ib
