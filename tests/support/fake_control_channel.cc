#include "support/fake_control_channel.h"

#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "base/log.h"

namespace tutti::test {

using Bytes = std::vector<std::byte>;

struct FakeWorld::Shared {
  std::mutex mutex;
  std::condition_variable changed;
  std::chrono::milliseconds limit{};
  std::map<std::tuple<int, int, int>, std::deque<Bytes>> mail;  // (from, to, tag)
  std::vector<Status> aborted;
};

namespace {

// Collectives travel as ordinary messages under tags that no caller uses.
constexpr int kAllGatherTag = -1;
constexpr int kBroadcastTag = -2;

class FakeChannel : public ControlChannel {
 public:
  FakeChannel(std::shared_ptr<FakeWorld::Shared> shared, int rank, int size)
      : shared_(std::move(shared)), rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Status allGather(std::span<std::byte> blocks) override {
    const auto ranks = static_cast<std::size_t>(size_);
    if (blocks.size() % ranks != 0) {
      return fail(ncclInternalError, "rank {}: allGather of {} bytes among {} ranks", rank_, blocks.size(), size_);
    }
    const std::size_t each = blocks.size() / ranks;
    const auto mine = blocks.subspan(static_cast<std::size_t>(rank_) * each, each);
    for (int peer = 0; peer < size_; ++peer) {
      if (peer != rank_) TRY(send(peer, kAllGatherTag, mine));
    }
    for (int peer = 0; peer < size_; ++peer) {
      if (peer != rank_) TRY(recv(peer, kAllGatherTag, blocks.subspan(static_cast<std::size_t>(peer) * each, each)));
    }
    return {};
  }

  Status barrier() override {
    Bytes nothing;
    return allGather(nothing);
  }

  Status broadcast(int root, std::span<std::byte> data) override {
    if (rank_ != root) return recv(root, kBroadcastTag, data);
    for (int peer = 0; peer < size_; ++peer) {
      if (peer != rank_) TRY(send(peer, kBroadcastTag, data));
    }
    return {};
  }

  Status send(int peer, int tag, std::span<const std::byte> message) override {
    const std::lock_guard lock(shared_->mutex);
    if (const Status why = abortedWith(); !why.ok()) return why;
    shared_->mail[{rank_, peer, tag}].emplace_back(message.begin(), message.end());
    shared_->changed.notify_all();
    return {};
  }

  Status recv(int peer, int tag, std::span<std::byte> message) override {
    ASSIGN(const Bytes received, take(peer, tag));
    if (received.size() != message.size()) {
      return fail(ncclInternalError, "rank {}: expected {} bytes from rank {} (tag {}), got {}", rank_, message.size(),
                  peer, tag, received.size());
    }
    if (!message.empty()) std::memcpy(message.data(), received.data(), message.size());
    return {};
  }

  bool arrived(int peer, int tag) override {
    const std::lock_guard lock(shared_->mutex);
    const auto queue = shared_->mail.find({peer, rank_, tag});
    return !abortedWith().ok() || (queue != shared_->mail.end() && !queue->second.empty());
  }
  milliseconds timeout() const override { return shared_->limit; }

  void abort(Status why) override {
    const std::lock_guard lock(shared_->mutex);
    Status& mine = shared_->aborted[static_cast<std::size_t>(rank_)];
    if (mine.ok()) mine = why;
    shared_->changed.notify_all();
  }

 private:
  Status abortedWith() const { return shared_->aborted[static_cast<std::size_t>(rank_)]; }

  Result<Bytes> take(int peer, int tag) {
    std::unique_lock lock(shared_->mutex);
    auto& queue = shared_->mail[{peer, rank_, tag}];
    const bool woken =
        shared_->changed.wait_for(lock, shared_->limit, [&] { return !queue.empty() || !abortedWith().ok(); });
    if (const Status why = abortedWith(); !why.ok()) return why;
    if (!woken) {
      return fail(ncclRemoteError, "rank {}: nothing came from rank {} (tag {}) within {} ms", rank_, peer, tag,
                  shared_->limit.count());
    }
    Bytes bytes = std::move(queue.front());
    queue.pop_front();
    return bytes;
  }

  std::shared_ptr<FakeWorld::Shared> shared_;
  int rank_;
  int size_;
};

}  // namespace

FakeWorld::FakeWorld(int size, std::chrono::milliseconds limit) : shared_(std::make_shared<Shared>()) {
  shared_->limit = limit;
  shared_->aborted.resize(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank) channels_.push_back(std::make_unique<FakeChannel>(shared_, rank, size));
}

FakeWorld::~FakeWorld() = default;

void FakeWorld::abortAll(Status why) {
  for (const auto& channel : channels_) channel->abort(why);
}

}  // namespace tutti::test
