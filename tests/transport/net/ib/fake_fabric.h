// What the verbs library for tests is made of. One mutex guards all of it.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <span>
#include <thread>

#include "transport/net/ib/fake_verbs.h"

namespace tutti::test {

struct NicState;

/// The structures that programs see come first in each: a pointer to one is a pointer to the other.
struct Region {
  ibv_mr mr{};
  std::uintptr_t first = 0;  ///< as work requests name it
  char* base = nullptr;
  void* mapping = nullptr;  ///< of a dma-buf
  std::size_t mapped = 0;
  unsigned access = 0;
  std::string call;
};

struct Pair;

struct Queue {
  struct Entry {
    ibv_wc wc{};
    Pair* pair = nullptr;
    std::uint32_t sends = 0;  ///< whose room it gives back
    std::uint32_t receives = 0;
  };
  ibv_cq cq{};
  std::deque<Entry> entries;
  std::deque<Entry> delayed;  ///< until the NIC's acknowledgements come again
};

struct Work {
  ibv_send_wr wr{};
  std::vector<ibv_sge> parts;
  std::vector<char> inlined;
  bool waited = false;  ///< for a receive: said once
  std::uint64_t bytes() const;
};

struct Pair {
  ibv_qp qp{};
  ibv_qp_init_attr init{};
  ibv_qp_attr prepared{};  ///< given for INIT
  ibv_qp_attr ready{};     ///< given for RTR
  std::uint32_t ece = 0;   ///< was set
  NicState* nic = nullptr;
  std::deque<Work> kept;
  std::deque<std::uint64_t> receives;
  std::uint32_t sending = 0;
  std::uint32_t receiving = 0;
  std::uint32_t quiet = 0;  ///< done without a completion since the last one
  int unacknowledged = 0;   ///< events that were read
};

/// What is on the wire of a queue pair that is out of order: whole messages, in order.
struct Late {
  struct Message {
    ibv_send_wr wr{};
    std::vector<char> bytes;
  };
  NicState* nic = nullptr;  ///< the peer's
  std::uint32_t number = 0;
  std::deque<Message> messages;
};

struct Context {
  ibv_context context{};
  NicState* nic = nullptr;
  std::deque<ibv_async_event> events;
};

struct NicState {
  FakeNic is;
  ibv_device device{};
  std::set<Context*> contexts;
  std::map<std::uint32_t, Pair*> pairs;
  std::map<std::uint32_t, Region*> regions;  ///< by local key
  std::uint32_t nextNumber = 17;             ///< the same on all NICs
  std::uint32_t nextKey = 0x100;
  bool cut = false;
  bool losesReceives = false;
  bool delaysAcknowledgements = false;
  std::set<Queue*> queues;
};

inline constexpr std::uint32_t kRemoteKeyBit = 0x80000000;

/// Whose element is a queue pair: it stays until they were acknowledged.
bool isOfQueuePair(ibv_event_type event);

class Fabric final : public FakeVerbs {
 public:
  void plug(std::vector<FakeNic> nics) override;
  void change(const std::string& nic, int port, const FakePort& now) override;
  FakeCounts counts() override;
  std::string file() override;
  void failCall(const std::string& function, int nth, int error, int times) override;
  void failChange(ibv_qp_state wanted, int error, int times, int nth) override;
  int calls(const std::string& function) override;
  void failWork(ibv_wr_opcode opcode, int nth, ibv_wc_status status, std::uint32_t vendor, bool arrives) override;
  void keepLate() override;
  bool deliverLate() override;
  void loseReceives(const std::string& nic) override;
  void delayAcknowledgements(const std::string& nic, bool delayed) override;
  void plugWire(const std::string& nic) override;
  void hold(bool held) override;
  bool deliverOne(bool fromTheLast) override;
  void deliverByThread() override;
  void unplugWire(const std::string& nic) override;
  void portEvent(const std::string& nic, ibv_event_type event, int port) override;
  int queuePairEvents(const std::string& nic, ibv_event_type event) override;
  std::vector<FakeRegion> regions(const std::string& nic) override;
  std::vector<ibv_qp_attr> readyToReceive(const std::string& nic) override;
  std::vector<ibv_qp_init_attr> queuePairs(const std::string& nic) override;
  std::vector<std::uint32_t> ece(const std::string& nic) override;
  std::vector<FakeWork> work() override;
  std::vector<std::string> faults() override;

  /// errno that this call is to fail with; 0: it is not.
  int failing(const std::string& function);
  /// With the mutex held, as all below.
  int failingChange(ibv_qp_state wanted);
  void fault(std::string what) { faults_.push_back(std::move(what)); }
  NicState& nicOf(const std::string& name);
  const FakePort& portOf(const Pair& pair) const;

  int modify(Pair& pair, const ibv_qp_attr& wanted, int mask);
  int post(Pair& pair, const ibv_send_wr& wr);
  int post(Pair& pair, const ibv_recv_wr& wr);
  int poll(Queue& queue, std::span<ibv_wc> room);
  void breakUp(Pair& pair);
  void forget(Pair& pair);
  void tell(Context& context, const ibv_async_event& event);
  /// Memory of a NIC that a key names; null: none that covers it and may be used like this.
  static char* memory(const NicState& nic, const ibv_pd* domain, std::uint32_t key, bool remote, std::uint64_t address,
                      std::uint64_t bytes, unsigned access);

  std::mutex mutex;
  std::condition_variable acknowledged;
  std::vector<std::unique_ptr<NicState>> nics;
  FakeCounts live;

 private:
  int checkReady(const Pair& pair, const ibv_qp_attr& wanted) const;
  Pair* peerOf(const Pair& pair);
  void runAll();
  /// Does the first that is kept. False: nothing could be done.
  bool step(Pair& pair);
  ibv_wc_status carryOut(Pair& pair, Pair* peer, const Work& work);
  ibv_wc_status plannedFor(const Work& work, std::uint32_t* vendor, bool* arrives);
  void receive(Pair& peer, const ibv_send_wr& wr, std::uint64_t bytes);
  void keepForLater(Pair& pair);
  bool carryOutLate(Late& late);
  void finish(Pair& pair, const Work& work, ibv_wc_status status, std::uint32_t vendor);
  void push(Pair& pair, bool receive, Queue::Entry entry);
  void deliver();

  struct Plan {
    int nth = 0;
    int error = 0;
    int times = 0;
    std::uint32_t vendor = 0;
    bool arrives = false;
  };
  std::map<std::string, Plan> failures_;
  std::map<int, Plan> changes_;
  std::map<int, Plan> works_;
  std::map<std::string, int> calls_;
  std::vector<FakeWork> work_;
  std::vector<std::string> faults_;
  std::deque<Late> late_;
  bool keepsLate_ = false;
  bool held_ = false;
  bool stop_ = false;
  std::thread thread_;
};

Fabric& fabric();

}  // namespace tutti::test
