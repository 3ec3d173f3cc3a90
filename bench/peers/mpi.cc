// Collectives of an MPI library; built once with each implementation's compiler.
#include <mpi.h>

#include "peer.h"

namespace {

class MpiPeer : public peer::HeapPeer {
 public:
  MpiPeer() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }
  double largest(double value) override {
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return value;
  }
  std::function<void()> prepare(peer::Call& c) override {
    const int count = static_cast<int>(c.count);
    const void* const in = c.inPlace ? MPI_IN_PLACE : c.in;
    switch (c.op) {
      case peer::Op::AllReduce:
        return [=] { MPI_Allreduce(in, c.out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); };
      case peer::Op::AllGather:
        return [=] { MPI_Allgather(in, count, MPI_FLOAT, c.out, count, MPI_FLOAT, MPI_COMM_WORLD); };
      case peer::Op::ReduceScatter:
        return [=] { MPI_Reduce_scatter_block(in, c.out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); };
      case peer::Op::Broadcast:
        if (rank_ == 0) std::copy(c.in, c.in + c.count, c.out);  // MPI_Bcast has one buffer
        return [=] { MPI_Bcast(c.out, count, MPI_FLOAT, 0, MPI_COMM_WORLD); };
      case peer::Op::AlltoAll:
        return [=] { MPI_Alltoall(c.in, count, MPI_FLOAT, c.out, count, MPI_FLOAT, MPI_COMM_WORLD); };
      case peer::Op::SendRecv:
        return [=, next = (rank_ + 1) % size_, previous = (rank_ + size_ - 1) % size_] {
          MPI_Sendrecv(c.in, count, MPI_FLOAT, next, 0, c.out, count, MPI_FLOAT, previous, 0, MPI_COMM_WORLD,
                       MPI_STATUS_IGNORE);
        };
    }
    return {};
  }

 private:
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const peer::Options options = peer::parse(argc, argv, {}, true);
  MpiPeer library;
  const int code = peer::runPeer(library, options);
  MPI_Finalize();
  return code;
}
