// AlltoAll of gloo over TCP on loopback; its other collectives are run by the older peer program.
// Ranks are started with RANK, WORLD_SIZE and PEERBENCH_STORE (a fresh folder) set.
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include "peer.h"

namespace {

class GlooPeer : public peer::HeapPeer {
 public:
  GlooPeer() {
    const int rank = std::atoi(std::getenv("RANK"));
    context_ = std::make_shared<gloo::rendezvous::Context>(rank, std::atoi(std::getenv("WORLD_SIZE")));
    gloo::transport::tcp::attr local("127.0.0.1");
    auto device = gloo::transport::tcp::CreateDevice(local);
    gloo::rendezvous::FileStore store(std::getenv("PEERBENCH_STORE"));
    context_->setTimeout(std::chrono::seconds(120));
    context_->connectFullMesh(store, device);
  }
  int rank() const override { return context_->rank; }
  int size() const override { return context_->size; }
  void barrier() override {
    gloo::BarrierOptions options(context_);
    gloo::barrier(options);
  }
  double largest(double value) override {
    gloo::AllreduceOptions options(context_);
    options.setOutput(&value, 1);
    options.setReduceFunction([](void* to, const void* a, const void* b, std::size_t n) {
      for (std::size_t i = 0; i < n; ++i) {
        static_cast<double*>(to)[i] = std::max(static_cast<const double*>(a)[i], static_cast<const double*>(b)[i]);
      }
    });
    gloo::allreduce(options);
    return value;
  }
  std::function<void()> prepare(const peer::Call& c) override {
    if (c.op != peer::Op::AlltoAll) return {};
    const std::size_t elements = c.count * static_cast<std::size_t>(size());
    auto options = std::make_shared<gloo::AlltoallOptions>(context_);
    options->setInput(const_cast<float*>(c.in), elements);
    options->setOutput(c.out, elements);
    return [options] { gloo::alltoall(*options); };
  }

 private:
  std::shared_ptr<gloo::rendezvous::Context> context_;
};

}  // namespace

int main(int argc, char** argv) {
  GlooPeer library;
  return peer::runPeer(library, argc, argv);
}
