// What the test plugins tell the tests about how they were called, and how they are made to misbehave.
//
// A test plugin reads TEST_NET_FAULT_V<version>, or else TEST_NET_FAULT, when it is first initialised after loading: a
// comma list of
//   init, devices, connect, accept, isend, irecv, test   an error in that call; "isend@100": after 100 good ones
//   zero-devices, unpack, unknown-device, no-p2p-bytes, no-name, two-devices    answers about devices
//   ports=N   N devices, two ports each of adapters 1b:00, 1c:00, …; what is fused is a device behind them
//   fuse[@N]  an error in makeVDevice
//   no-fused  makeVDevice succeeds without a device
//   no-parts  fused devices do not say what they are made of
//   gdr       it reads and writes GPU memory, which a software GPU's is any memory; every second flush takes a test
//   missing   its table lacks isend
//   hang[@N]  no request completes (after N that did)
//   short[@N] receives report half of what came
//   delay=US  requests complete that much later than they could
//   reorder   every second request completes only when a later one has, or after 2 ms
//   busy      every second isend and irecv has no room; the first connects and accepts are too early
//   waits     accept waits for a connect, and the first test of a send for the accept: 20 s at most, then an error
//   init-sleeps=MS, connect-sleeps=MS   that call takes so long
//   no-connection  connect never has a connection
//   in-order  an error if test is called for another request of a connection than the oldest
//   no-sizes  test does not write sizes
//   one-endpoint  all connections of a process need one endpoint: where one is closed with requests under way, that
//             goes, the close is an error, and so are sends, receives and tests from then on
//   odd-code  errors are no result codes
//   silent    errors without a message
//   coll-init an error in collNet's init
//   coll-devices[@N]  an error in collNet's devices
//   coll-fuse an error in collNet's makeVDevice
//   one-list  collNet and net share their list of devices: what one fuses the other has as well
// TEST_NET_SETS=NAME=VALUE;…  init puts these into the environment, where it has no such names
// TEST_COLLNET_SETS=…  the same for collNet's init
// TEST_NET_STALL=TAG:FILE   isend has no room for messages with that tag (their sender's rank) while the file exists
#pragma once

#include <atomic>
#include <cstdint>

namespace tutti::test {

/// Counted since the library was loaded.
struct TestNetCounts {
  std::atomic<int> inits = 0;
  std::atomic<int> finalizes = 0;
  std::atomic<int> openEnds = 0;          ///< connections and listeners that are not closed
  std::atomic<int> gpuRegistrations = 0;  ///< of GPU memory, taken back or not
  std::atomic<int> flushes = 0;
  std::atomic<int> registrations = 0;     ///< that are not taken back
  std::atomic<std::uint64_t> commId = 0;  ///< of the last init
  std::atomic<int> trafficClass = -2;     ///< of the last init or connect
  std::atomic<bool> sawHint = false;      ///< *request was not null before irecv
  std::atomic<int> fused = 0;             ///< devices of the last makeVDevice
  std::atomic<int> fusions = 0;           ///< calls of the net's makeVDevice
  std::atomic<int> collFusions = 0;       ///< of collNet's
  std::atomic<int> collInits = 0;
  std::atomic<int> collFinalizes = 0;
  std::atomic<std::uint64_t> collBytes = 0;  ///< of the last operation of collNet
};

/// The function that each test plugin exports as "testNetCounts".
using TestNetCountsFunction = TestNetCounts*();

}  // namespace tutti::test
