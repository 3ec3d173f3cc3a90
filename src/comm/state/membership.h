// A communicator's part in a family of those that share connections.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace tutti::comm {

class Family;

/// What a communicator has to do with a family.
struct Membership {
  std::shared_ptr<Family> family;  ///< null: it shares nothing, and no child will share with it
  std::vector<int> places;         ///< of its ranks in the family
  bool born = false;               ///< it shares what an older one has
  int mostChannels = 0;            ///< those of its parent; 0: no bound
  int channels = 0;                ///< its own
  std::string network;             ///< the name of the one it uses
};

}  // namespace tutti::comm
