// What a rank hears of others that are gone.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/status.h"

namespace tutti::bootstrap {

/// A rank that died, left without a word, or announced a failure of its own.
struct PeerLost {
  int rank = -1;     ///< -1 where no single rank is to blame
  std::string host;  ///< empty where not known
  Status why;
  std::string text;       ///< a whole sentence: who, where, how it was noticed
  bool died = false;      ///< its process is gone, or gives no sign of life: it comes to nothing any more
  bool corrects = false;  ///< it is the cause of a failure of which was told, or that was announced here, before
};

/// A rank that has left in peace.
struct Departure {
  int rank = -1;
  bool exited = false;             ///< by the end of its process, without leave()
  std::vector<std::byte> account;  ///< what it told leave() or announceExit()
};

}  // namespace tutti::bootstrap
