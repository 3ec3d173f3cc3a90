// What both ends of a connection over verbs have in common: completions, what went wrong, whether the peer is there.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "plugin/net.h"
#include "transport/net/ib/control.h"
#include "transport/net/ib/nic/registrations.h"
#include "transport/net/ib/queue_pairs.h"
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
};

/// A registration: of the same memory with each port.
struct IbRegistration {
  std::array<ibv_mr*, kMostChildren> regions{};
};

/// One end. isend, irecv and test from one thread at a time; registrations beside them.
class IbEnd {
 public:
  virtual ~IbEnd();
  IbEnd(const IbEnd&) = delete;
  IbEnd& operator=(const IbEnd&) = delete;

  /// Whether the request, one of this end's, is done. Errors stick.
  Result<bool> test(IbRequest& request, std::span<int> sizes);

  Result<IbRegistration*> registerMemory(const MemoryRange& range);
  Status deregister(IbRegistration* registration);

 protected:
  explicit IbEnd(std::unique_ptr<IbLink> link);

  /// What a work request was, in its id: completions with an error tell nothing else.
  enum class Work : std::uint8_t { Row, Grant };
  static std::uint64_t idOf(Work work, std::uint32_t number) { return static_cast<std::uint64_t>(work) << 32 | number; }
  static Work workOf(std::uint64_t id) { return static_cast<Work>(id >> 32); }
  static std::uint32_t numberOf(std::uint64_t id) { return static_cast<std::uint32_t>(id); }

  /// A work request of queue pair `pair` is done.
  virtual void completed(std::size_t pair, const ibv_wc& completion) = 0;
  /// What an end has under way besides.
  virtual Status progress() { return {}; }
  /// Whether an end that has this under way cannot do without a peer that has left in order. `failed`: some of its work
  /// has failed.
  virtual bool needsPeer(bool failed) const {
    static_cast<void>(failed);
    return false;
  }
  /// "sending" or "receiving"
  virtual std::string_view verb() const = 0;

  IbRequest* takeRequest();
  static void giveBack(IbRequest& request) { request.busy = false; }
  Status usable();
  /// Nothing was there to be done. Looks at peer and NICs now and then.
  Status idle();
  /// Posts a chain and takes its room. Errors: ncclSystemError.
  Status post(std::size_t pair, ibv_send_wr& chain, std::uint32_t requests);
  Status breakWith(Status why) { return broken_ = why; }
  /// Which queue pairs a row uses: the k-th.
  std::size_t pairOf(std::uint64_t row, std::size_t k) const { return (row * pairsInUse_ + k) % link_->pairs->count(); }
  std::size_t pairsInUse() const { return pairsInUse_; }
  std::string place() const;

  std::unique_ptr<IbLink> link_;

 private:
  Status advance();
  Status take(std::size_t port, const ibv_wc& completion);
  Status failedWith(std::size_t port, const ibv_wc& completion);
  Status look();
  std::uint64_t healthChanges() const;
  Status lookAtNics();
  Status lookAtQueuePairs();
  Status onPeer();
  Status onFarewell();
  Status breakQuietly(const std::string& why);

  std::size_t pairsInUse_;
  std::array<IbRequest, std::size_t{kIbRows} * kMostRowMessages> requests_;
  std::size_t nextRequest_ = 0;
  Status broken_;
  std::uint32_t idle_ = 0;  ///< tests that found nothing
  std::uint64_t healthSeen_ = 0;
  bool anyPortDown_ = false;
  SteadyClock::time_point lookAgain_{};
  std::string suspicion_;  ///< of the peer: reported unless it turns out to have left
  Deadline suspectUntil_ = Deadline::never();
};

}  // namespace tutti::net::ib
