// What is remembered of a launch, for reports of stalls and errors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/work.h"

namespace tutti::comm {

/// What a kernel does, for reports of stalls: which connections it uses.
struct LaunchShape {
  device::Func func = device::Func::AllReduce;
  device::Algorithm algorithm = device::Algorithm::Ring;
  device::Protocol protocol = device::Protocol::Simple;
};

/// What is remembered of the last launch.
struct LaunchNote {
  LaunchShape shape;
  unsigned firstChannel = 0;
  unsigned nChannels = 0;                 ///< 0: nothing was launched
  int root = -1;                          ///< of its first collective
  bool follows = true;                    ///< some of its collectives follow their algorithm's graph …
  bool inPlace = false;                   ///< … and some go PairMethod::InPlace
  std::vector<device::P2pWork> messages;  ///< of Func::SendRecv
  std::string text;                       ///< as Launcher::lastLaunch()
  std::uint64_t operations = 0;           ///< that the communicator has launched, all kinds
  std::uint64_t collectives = 0;          ///< of these, those that every rank calls
};

/// Messages with content, to and from one rank.
struct MessageCounts {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
};

/// Everything that was launched so far; what graphs replay is not.
struct LaunchCounts {
  std::uint64_t operations = 0;
  std::uint64_t collectives = 0;        ///< of these, those that every rank calls
  std::vector<MessageCounts> messages;  ///< by rank; of the ranks beyond its end there were none
};

}  // namespace tutti::comm
