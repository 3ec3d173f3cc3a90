// What tutti-topo can be asked to do. Each returns the exit status: 0 done, 1 something is wrong with what was asked
// about, 2 it could not be done; the reason is on stderr.
#pragma once

#include <string>
#include <vector>

#include "tutti_topo/load.h"

namespace tutti::tool {

struct DrawRequest {
  std::string output;          ///< path; empty: stdout
  std::string graph = "ring";  ///< as graphName() says it, or "none"
  std::vector<int> channels;   ///< those seen at first; empty: all that can be told apart
  std::string graphFile;       ///< instead of a search; empty: search
  std::string title;           ///< empty: the file's name
};

int runShow(const MachineChoice& choice);
int runPaths(const MachineChoice& choice);
int runSearch(const MachineChoice& choice, bool json);
int runDraw(const MachineChoice& choice, const DrawRequest& request);
/// `graphFile`: empty: what the search finds.
int runValidate(const MachineChoice& choice, const std::string& graphFile);

/// Keeps the library's log lines off stdout and stderr: what matters of them is said once, by the commands.
void silenceLog();

}  // namespace tutti::tool
