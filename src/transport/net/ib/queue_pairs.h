// All queue pairs of one end of a connection, over all ports of its device.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "transport/net/ib/queue_pair.h"
#include "transport/net/ib/wire.h"

namespace tutti::net::ib {

/// A port's completion queue.
class CompletionQueue {
 public:
  /// Errors: ncclSystemError.
  static Result<std::unique_ptr<CompletionQueue>> create(const IbPort& port, std::uint32_t entries);
  ~CompletionQueue();
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;
  ibv_cq* get() const { return queue_; }

 private:
  CompletionQueue(const IbPort& port, ibv_cq* queue) : port_(port), queue_(queue) {}
  const IbPort& port_;
  ibv_cq* queue_;
};

/// Memory of an end's own that its NICs write or read, on pages of its own: a child of fork() does not have them.
class EndMemory {
 public:
  /// Of zeros, registered with all ports in strict order. Errors: ncclSystemError.
  static Result<std::unique_ptr<EndMemory>> create(std::span<const IbPort* const> ports, std::size_t bytes);
  ~EndMemory();
  EndMemory(const EndMemory&) = delete;
  EndMemory& operator=(const EndMemory&) = delete;

  std::byte* data() const { return static_cast<std::byte*>(mapping_.get().address); }
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(data()); }
  std::uint32_t localKey(std::size_t port) const { return regions_[port]->lkey; }
  std::uint32_t remoteKey(std::size_t port) const { return regions_[port]->rkey; }

 private:
  EndMemory(std::span<const IbPort* const> ports, Mapping mapping)
      : ports_(ports.begin(), ports.end()), mapping_(std::move(mapping)) {}
  std::vector<const IbPort*> ports_;
  Mapping mapping_;
  std::vector<ibv_mr*> regions_;
};

/// The ports outlive it, as does what `options` refers to. All queue pairs are made at first; later some may be gone,
/// and be made again.
class QueuePairs {
 public:
  struct Shape {
    std::size_t count = 0;    ///< at most kMostQueuePairs
    std::uint32_t sends = 0;  ///< of each
    std::uint32_t receives = 0;
    std::uint32_t inlineBytes = 0;
    int trafficClass = 0;
    int serviceLevel = 0;
  };

  /// Of the ports, number i on port i mod their count. Errors: ncclSystemError.
  static Result<std::unique_ptr<QueuePairs>> create(std::vector<const IbPort*> ports, const Shape& shape,
                                                    const IbOptions& options);

  std::size_t count() const { return pairs_.size(); }
  Strands all() const;
  QueuePair& operator[](std::size_t i) { return *pairs_[i]; }
  bool has(std::size_t i) const { return pairs_[i] != nullptr; }
  const std::vector<const IbPort*>& ports() const { return ports_; }
  std::size_t portOf(std::size_t pair) const { return pair % ports_.size(); }
  std::size_t remotePortOf(std::size_t pair) const { return pair % remote_.children; }
  /// Those between the same ports.
  Strands besides(std::size_t pair) const;
  Strands ofPort(std::size_t port) const;

  /// What the peer is told, but for the memory. Before connect() with what the NICs could use of ECE, after it with
  /// what they do.
  SideBlock describe() const;
  /// Connects all of them with the peer's. Where both ends have failover, those that are refused, or that the peer has
  /// not, are gone afterwards, as long as one stands. False: not yet. Errors: those of QueuePair::connect,
  /// ncclInternalError (the block is none), ncclRemoteError (its ports are of another kind).
  Result<bool> connect(const SideBlock& remote);
  const SideBlock& remote() const { return remote_; }
  /// Those that were refused at the first connect(), which the peer has, and why.
  const Strands& refused() const { return refused_; }
  const std::string& refusal() const { return refusal_; }

  /// Completions of one port that are there, as many as have room.
  std::span<ibv_wc> poll(std::size_t port, std::span<ibv_wc> room);
  /// Numbers are each NIC's own. count(): none of these.
  std::size_t indexOf(std::size_t port, std::uint32_t number) const;
  /// "mlx5_0:1 (GID 1 …), queue pair 17, to mlx5_1:1 (GID 1 …), queue pair 18"
  std::string pathText(std::size_t pair) const;
  void breakUp();

  /// Destroys all but these, and the completion queues of ports that have none.
  void keep(const Strands& strands);
  /// Where there are none: makes these, with what the ports say now, on new completion queues. What was made; why
  /// another was not is in the log (INFO). Of ECE they use what the first did.
  Strands make(const Strands& strands, std::uint64_t era);
  /// Goes on connecting those of `strands` with the peer's. Whose peer has none and who is refused is taken out of it.
  /// False: not yet.
  bool connect(Strands& strands, const SideBlock& remote);
  bool connected(std::size_t pair) const { return has(pair) && pairs_[pair]->connected(); }

 private:
  QueuePairs(std::vector<const IbPort*> ports, const Shape& shape, const IbOptions& options)
      : ports_(std::move(ports)),
        shape_(shape),
        options_(options),
        addresses_(ports_.size()),
        queues_(ports_.size()),
        pairs_(shape.count) {}
  Status checkRemote(const SideBlock& remote) const;
  QueuePairPath pathOf(std::size_t pair) const;
  Result<bool> connectFirst(std::size_t pair);
  Status makeQueue(std::size_t port);
  Status makePair(std::size_t pair);

  std::vector<const IbPort*> ports_;
  Shape shape_;
  const IbOptions& options_;
  std::vector<PortAddress> addresses_;
  std::vector<std::unique_ptr<CompletionQueue>> queues_;
  std::vector<std::unique_ptr<QueuePair>> pairs_;
  SideBlock remote_;
  std::size_t standing_ = 0;  ///< so many are connected, or never will be
  Strands refused_;
  std::string refusal_;
  std::uint64_t era_ = 0;
};

}  // namespace tutti::net::ib
