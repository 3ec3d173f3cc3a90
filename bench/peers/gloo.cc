// Collectives of gloo over TCP on loopback: it has no transport through shared memory. Ranks are started by launch.py.
#include <memory>
#include <utility>

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/alltoall.h>
#include <gloo/broadcast.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include "meeting.h"
#include "peer.h"

namespace {

using Run = std::function<void()>;

void addFloats(void* to, const void* a, const void* b, std::size_t n) {
  const auto* left = static_cast<const float*>(a);
  const auto* right = static_cast<const float*>(b);
  std::transform(left, left + n, right, static_cast<float*>(to), std::plus<>());
}

class GlooPeer : public peer::HeapPeer {
 public:
  explicit GlooPeer(std::string algorithm) : algorithm_(std::move(algorithm)) {
    context_ = std::make_shared<gloo::rendezvous::Context>(meeting_.rank(), meeting_.size());
    gloo::transport::tcp::attr local("127.0.0.1");
    auto device = gloo::transport::tcp::CreateDevice(local);
    gloo::rendezvous::FileStore store(peer::fromLauncher("PEER_FOLDER"));
    context_->setTimeout(std::chrono::seconds(120));
    context_->connectFullMesh(store, device);
  }
  int rank() const override { return context_->rank; }
  int size() const override { return context_->size; }
  void barrier() override { meeting_.barrier(); }
  double largest(double value) override { return meeting_.largest(value); }
  Run prepare(peer::Call& c) override {
    const std::size_t all = c.count * static_cast<std::size_t>(size());
    auto* in = const_cast<float*>(c.in);  // gloo's options take what they only read without const
    switch (c.op) {
      case peer::Op::AllReduce:
        return algorithm_ == "halving_doubling" ? halvingDoubling(c) : allReduce(c);
      case peer::Op::ReduceScatter:
        return reduceScatter(c);
      case peer::Op::AllGather: {
        auto options = std::make_shared<gloo::AllgatherOptions>(context_);
        options->setInput(in, c.count);
        options->setOutput(c.out, all);
        return [options] { gloo::allgather(*options); };
      }
      case peer::Op::Broadcast: {
        auto options = std::make_shared<gloo::BroadcastOptions>(context_);
        if (rank() == 0) std::copy(c.in, c.in + c.count, c.out);  // in place, as MPI's
        options->setOutput(c.out, c.count);
        options->setRoot(0);
        return [options] { gloo::broadcast(*options); };
      }
      case peer::Op::AlltoAll: {
        auto options = std::make_shared<gloo::AlltoallOptions>(context_);
        options->setInput(in, all);
        options->setOutput(c.out, all);
        return [options] { gloo::alltoall(*options); };
      }
      case peer::Op::SendRecv:
        return sendRecv(c);
    }
    return {};
  }

 private:
  Run allReduce(const peer::Call& c) {
    auto options = std::make_shared<gloo::AllreduceOptions>(context_);
    options->setAlgorithm(algorithm_ == "bcube" ? gloo::AllreduceOptions::Algorithm::BCUBE
                                                : gloo::AllreduceOptions::Algorithm::RING);
    options->setInput(const_cast<float*>(c.in), c.count);
    options->setOutput(c.out, c.count);
    options->setReduceFunction(addFloats);
    return [options] { gloo::allreduce(*options); };
  }

  Run sendRecv(const peer::Call& c) {
    const std::size_t bytes = c.count * sizeof(float);
    auto from =
        std::shared_ptr<gloo::transport::UnboundBuffer>(context_->createUnboundBuffer(const_cast<float*>(c.in), bytes));
    auto to = std::shared_ptr<gloo::transport::UnboundBuffer>(context_->createUnboundBuffer(c.out, bytes));
    constexpr std::uint64_t kSlot = 4711;
    return [from, to, next = (rank() + 1) % size(), previous = (rank() + size() - 1) % size()] {
      to->recv(previous, kSlot);
      from->send(next, kSlot);
      from->waitSend();
      to->waitRecv();
    };
  }

  /// Works in place only, so the output starts as a copy of the input; from the second call on it sums sums.
  Run halvingDoubling(const peer::Call& c) {
    std::copy(c.in, c.in + c.count, c.out);
    auto collective = std::make_shared<gloo::AllreduceHalvingDoubling<float>>(context_, std::vector<float*>{c.out},
                                                                              static_cast<int>(c.count));
    return [collective] { collective->run(); };
  }

  /// Works in place only: the rank's block of the sum replaces the start of its input.
  Run reduceScatter(peer::Call& c) {
    const auto n = static_cast<std::size_t>(size());
    c.out = const_cast<float*>(c.in);
    auto collective = std::make_shared<gloo::ReduceScatterHalvingDoubling<float>>(
        context_, std::vector<float*>{c.out}, static_cast<int>(c.count * n),
        std::vector<int>(n, static_cast<int>(c.count)));
    return [collective] { collective->run(); };
  }

  std::string algorithm_;
  peer::Meeting meeting_{0, true};  // gloo has threads of its own, which need a core
  std::shared_ptr<gloo::rendezvous::Context> context_;
};

}  // namespace

int main(int argc, char** argv) {
  const peer::Options options = peer::parse(argc, argv, {"ring", "bcube", "halving_doubling"});
  GlooPeer library(options.algorithm);
  return peer::runPeer(library, options);
}
