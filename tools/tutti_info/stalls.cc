#include "stalls.h"

#include <chrono>
#include <cstdio>

#include "ask.h"
#include "base/socket/local_service.h"

namespace tutti {

int askForStalls(int pid) {
  // A process asks the other ranks, who take seconds to answer.
  const tool::Answer answer = tool::askProcess(kStallsTopic, pid, std::chrono::seconds(15));
  if (!answer.ok) {
    std::fprintf(stderr, "tutti-info: %s\n", answer.text.c_str());
    return 1;
  }
  std::fwrite(answer.text.data(), 1, answer.text.size(), stdout);
  return 0;
}

}  // namespace tutti
