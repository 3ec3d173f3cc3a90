// A verbs library for tests: NICs, wires and memory in software, within one process, as a test arranges them.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace tutti::test {

/// An entry of a port's table of GIDs; RoCE version 0: the system says nothing of its kind.
struct FakeGid {
  std::string address;  ///< "::ffff:10.0.0.1"; "": the entry is empty
  int roceVersion = 2;
};

struct FakePort {
  bool ethernet = true;
  ibv_port_state state = IBV_PORT_ACTIVE;
  int speed = 32;  ///< of ibv_port_attr: 25 Gbit/s a lane
  int width = 2;   ///< four lanes
  ibv_mtu mtu = IBV_MTU_4096;
  std::uint16_t lid = 0;
  std::uint8_t flags = 0;
  std::vector<FakeGid> gids;
};

struct FakeNic {
  std::string name;
  std::string pci;  ///< "0000:17:00.0"; "": sysfs has no device
  std::vector<FakePort> ports;
  std::uint64_t guid = 0;
  int maxQueuePairs = 1000;
  int openError = 0;       ///< errno of ibv_open_device
  bool dmaBufs = false;    ///< the kernel takes them
  bool gidTables = false;  ///< the kernel gives tables of GIDs as a whole
  /// Work requests that its queue pairs really have room for, whatever they said; 0: as many as were asked for.
  std::uint32_t sendRoom = 0, receiveRoom = 0;
  std::size_t registersLess = 0;  ///< bytes by which regions end before what was asked for
  std::uint32_t ece = 0;          ///< bits that it has of the enhanced connection establishment; 0: it has none
};

/// What there is at the moment: all zero once everything was given back.
struct FakeCounts {
  int lists = 0, contexts = 0, domains = 0, queues = 0, queuePairs = 0, regions = 0;
  friend bool operator==(const FakeCounts&, const FakeCounts&) = default;
};

/// A region as it was registered.
struct FakeRegion {
  std::uintptr_t address = 0;
  std::size_t bytes = 0;
  unsigned access = 0;
  std::string call;  ///< "ibv_reg_mr"
};

/// One work request that a sender posted, as it is carried out.
struct FakeWork {
  std::string nic;
  std::uint32_t queuePair = 0;
  ibv_wr_opcode opcode{};
  std::uint64_t bytes = 0;
  bool signaled = false;
  bool inlined = false;
};

/// The wires and all NICs. Work is done when it is posted, unless it is held: then in the order that the test wants;
/// that of one queue pair is never changed. Any thread.
class FakeVerbs {
 public:
  virtual ~FakeVerbs() = default;

  /// New NICs, and nothing of what was asked for before. There must be nothing open.
  virtual void plug(std::vector<FakeNic> nics) = 0;
  virtual void change(const std::string& nic, int port, const FakePort& now) = 0;
  virtual FakeCounts counts() = 0;
  /// The file, as NCCL_IBVERBS_LIB names it.
  virtual std::string file() = 0;

  /// Call number `nth` from now of the function (1: the next) fails with errno `error`, and as many as `times` in turn.
  virtual void failCall(const std::string& function, int nth, int error, int times = 1) = 0;
  /// As many calls of ibv_modify_qp to this state fail, from the `nth` from now.
  virtual void failChange(ibv_qp_state wanted, int error, int times, int nth = 1) = 0;
  virtual int calls(const std::string& function) = 0;
  /// Work request number `nth` from now of the kind ends with `status`, and its queue pair with it. `arrives`: though
  /// the peer's NIC has had all of it.
  virtual void failWork(ibv_wr_opcode opcode, int nth, ibv_wc_status status, std::uint32_t vendor = 0,
                        bool arrives = false) = 0;
  /// What was under way on queue pairs that are put out of order stays on the wire, and comes to the peer's when
  /// deliverLate() is called, or with a thread that delivers. Each call carries out one; false: there was none.
  virtual void keepLate() = 0;
  virtual bool deliverLate() = 0;
  /// Completions of receives that this NIC takes from now on are lost.
  virtual void loseReceives(const std::string& nic) = 0;
  /// Completions of what this NIC sends are there only once this is false again.
  virtual void delayAcknowledgements(const std::string& nic, bool delayed) = 0;

  /// Keeps what is posted from now on; false: does all that was kept.
  virtual void hold(bool held) = 0;
  /// Of what is kept, does the first of one queue pair: the last one's that has any, or the first one's. False: there
  /// is none.
  virtual bool deliverOne(bool fromTheLast) = 0;
  /// A thread does what is kept, of a queue pair that it draws by lot each time; until hold(false).
  virtual void deliverByThread() = 0;
  /// Nothing comes from this NIC and nothing reaches it: the work of others ends with a retry error.
  virtual void unplugWire(const std::string& nic) = 0;
  virtual void plugWire(const std::string& nic) = 0;

  virtual void portEvent(const std::string& nic, ibv_event_type event, int port) = 0;
  /// Of the NIC's queue pairs, all of them.
  virtual int queuePairEvents(const std::string& nic, ibv_event_type event) = 0;

  virtual std::vector<FakeRegion> regions(const std::string& nic) = 0;
  /// What was given to ibv_modify_qp for RTR, oldest first, of queue pairs that are open.
  virtual std::vector<ibv_qp_attr> readyToReceive(const std::string& nic) = 0;
  virtual std::vector<ibv_qp_init_attr> queuePairs(const std::string& nic) = 0;
  /// What of the enhanced connection establishment its queue pairs use, which are open.
  virtual std::vector<std::uint32_t> ece(const std::string& nic) = 0;
  virtual std::vector<FakeWork> work() = 0;
  /// What a NIC would not have done as well: work that waited for a receive, full completion queues, memory that was
  /// given back under work, calls with wrong arguments.
  virtual std::vector<std::string> faults() = 0;
};

}  // namespace tutti::test

/// The one of this process.
extern "C" tutti::test::FakeVerbs* tuttiFakeVerbs();
