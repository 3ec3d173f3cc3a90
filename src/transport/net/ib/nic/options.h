// How the network over verbs uses its NICs.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "transport/net/ib/nic/gid.h"

namespace tutti {
struct Params;
}

namespace tutti::net::ib {

/// Most NICs that are fused into one device, messages of one receive, and queue pairs of one connection.
inline constexpr std::size_t kMostChildren = 8;
inline constexpr std::size_t kMostRowMessages = 8;
inline constexpr std::size_t kMostQueuePairs = 128;

/// The settings, as this communicator sees them.
struct IbOptions {
  std::string who = "a rank";  ///< rank, host and device of who uses them, for messages
  bool disabled = false;
  std::string library;  ///< of the verbs; "": the system's
  std::string hca;      ///< the list of NCCL_IB_HCA
  GidWish gid;
  int timeout = 20;  ///< a packet that is not acknowledged goes again after 4.096 us times 2^timeout
  int retries = 7;   ///< so many times
  int serviceLevel = 0;
  int trafficClass = 0;
  int grantTrafficClass = -1;  ///< of what receivers write to senders; -1: the sender's
  int partitionIndex = 0;
  int queuePairs = 1;   ///< of a connection, for each NIC of a fused device
  bool splits = false;  ///< every message over all queue pairs; else they take turns
  std::uint32_t adaptiveThreshold =
      8192;                  ///< longer messages are announced apart where packets may overtake each other
  int adaptiveRouting = -2;  ///< 1, 0; -2: as the link layer has it
  bool relaxedOrdering = false;
  bool gpuMemoryIsHost = false;  ///< it is this process's own, as a software GPU's is: any NIC can be told of it
  bool mergesNics = true;
  bool mergesFunctions = true;      ///< virtual functions of a card count as one
  bool failsOnEvents = true;        ///< asynchronous events of a connection end it
  bool inlines = false;             ///< what receivers write to senders travels in the work request
  bool ece = true;                  ///< the enhanced connection establishment, where NIC and library have it
  bool flushes = true;              ///< of GPU memory
  int modifyRetries = 34;           ///< of a change of state that ran into a timeout
  milliseconds modifyStep{100};     ///< try i comes i times this later
  bool retriesAll = false;          ///< after any error
  bool failover = true;             ///< a connection goes on without ports that fail, while it has others
  bool recovery = true;             ///< and takes them back
  milliseconds recoveryDelay{200};  ///< before the first try; after each that fails twice as long
  milliseconds tryBound{4000};      ///< of a try
  milliseconds answerBound{5000};   ///< of the peer's answer
  int recoveryTries = 5;            ///< that fail, before a path is given up

  /// The longest that a dead path may take to be noticed by a NIC: all retries, each of which may take four times as
  /// long as set (InfiniBand Architecture Specification, volume 1, 9.7.6.1.3).
  std::chrono::nanoseconds lossBound() const;

  /// What the GID of a port should be like. InfiniBand routes by LID within a subnet, where entry 0 is what all know;
  /// Ethernet has nothing but GIDs.
  GidWish gidFor(bool ethernet) const;
};

/// `trafficClass`: the communicator's, which counts where the settings say nothing, as the service level too if it can
/// be one; -1, or what a configuration has that names none: none.
IbOptions ibOptions(const Params& params, int trafficClass);

/// What is wrong with a communicator's traffic class, where it would count; "": nothing.
std::string trafficDoubt(const Params& params, int trafficClass);
/// The same for its use as a service level, by which ports of InfiniBand go, and those of Ethernet need not.
std::string serviceLevelDoubt(const Params& params, int trafficClass);
/// "traffic class 106 (NCCL_IB_TC), service level 3 (trafficClass of the configuration), grants with traffic class 106"
std::string trafficText(const Params& params, int trafficClass);

}  // namespace tutti::net::ib
